// Keys, mouse and fingers.
import { $ } from "./panel.js";

const CAMERA = {
  w: (c) => c.pan(0, 40), s: (c) => c.pan(0, -40), a: (c) => c.pan(40, 0), d: (c) => c.pan(-40, 0),
  "+": (c) => c.zoom(0.85), "=": (c) => c.zoom(0.85), "-": (c) => c.zoom(1 / 0.85),
};
const ORBIT = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// `keys`: what each of them does; `moved` is called when the camera has moved.
export function listen(canvas, camera, keys, moved, pick) {
  addEventListener("keydown", (event) => {
    const { key, target } = event;
    const helped = $("help").open && key !== "h";
    const typed = key !== "Escape" && target.closest?.("input, select");
    if (event.ctrlKey || event.metaKey || event.altKey || helped || typed) return;
    if (key === " " && target.closest?.("button")) return;
    const name = key.length === 1 ? key.toLowerCase() : key;
    if (event.shiftKey && ORBIT[key]) camera.orbit(...ORBIT[key].map((x) => x * 0.09));
    else if (CAMERA[name]) CAMERA[name](camera);
    else if (keys[name]) keys[name]();
    else return;
    event.preventDefault();
    moved();
  });
  const held = new Map();
  let way = 0;
  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (!held.size) way = 0;
    held.set(event.pointerId, event);
  };
  canvas.onpointermove = (event) => {
    const last = held.get(event.pointerId);
    if (!last) return;
    const [dx, dy] = [event.clientX - last.clientX, event.clientY - last.clientY];
    way += Math.abs(dx) + Math.abs(dy);
    if (held.size > 1) {
      const [other] = [...held.values()].filter((p) => p.pointerId !== event.pointerId);
      const span = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY);
      camera.pan(dx / 2, dy / 2);
      camera.zoom(span(last) / Math.max(1, span(event)), (event.clientX + other.clientX) / 2,
        (event.clientY + other.clientY) / 2);
    } else if (event.buttons & 6 || event.shiftKey || camera.flat) camera.pan(dx, dy);
    else camera.orbit(dx * 0.006, dy * 0.006);
    held.set(event.pointerId, event);
    moved();
  };
  canvas.onpointerup = canvas.onpointercancel = (event) => {
    const clicked = way < 5 && event.type === "pointerup" && !event.button;
    if (clicked) pick(event.clientX, event.clientY);
    held.delete(event.pointerId);
  };
  canvas.oncontextmenu = (event) => event.preventDefault();
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    camera.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.004), event.clientX,
      event.clientY);
    moved();
  }, { passive: false });
}
