// What is written over the picture: ticks, axes, scale bar, legend, a ring around what is
// followed. It has its own canvas, so that pictures and films have it, too.
import { minus } from "./camera.js";
import { digits, grouped, ticks } from "./lines.js";

const NAMES = "xyz";
const LEGEND = 190;
export const CURVE = 150; // pixels of the lower rim

// In a context; `scale`: pixels of its canvas for one of the page.
export function inked(c) {
  let paper, marks;

  function draw(scale, camera, view) {
    c.clearRect(0, 0, c.canvas.width, c.canvas.height);
    over(scale, camera, view);
  }

  // Over what is there, as on a picture.
  function over(scale, camera, view) {
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.fillStyle = c.strokeStyle = view.inkColour;
    paper = view.paper;
    marks = [];
    Object.assign(c, { font: "12px system-ui, sans-serif", lineWidth: 1, lineJoin: "round",
      textBaseline: "middle" });
    if (view.axes && view.frameBox) edges(camera, view);
    const bottom = camera.height - 16;
    if (view.axes && !camera.flat) triad(camera, 40, bottom - 42);
    if (!view.named) bar(camera, view, camera.flat ? 16 : 88, bottom);
    if (view.legend) {
      const low = view.curve ? 60 : bottom - 4;
      legend(view, camera.width - 16 - LEGEND, camera.width < 480 ? 116 : low);
    }
    if (view.curve) curve(view.curve, 64, camera.height - 34, camera.width - 88);
    if (view.followed) ring(camera, view.followed);
  }

  function ring(camera, place) {
    const [x, y, depth] = camera.project(place);
    if (depth <= 0) return;
    c.beginPath();
    c.arc(x, y, 11, 0, 2 * Math.PI);
    c.stroke();
  }

  function path(...places) {
    c.beginPath();
    for (const place of places) c.lineTo(...place);
    c.stroke();
  }

  function triad(camera, x, y) {
    const { right, up, out } = camera.basis();
    for (const i of [0, 1, 2].sort((a, b) => out[a] - out[b])) {
      const [dx, dy] = [26 * right[i], -26 * up[i]];
      c.globalAlpha = 0.6 + 0.4 * Math.max(0, out[i]);
      path([x, y], [x + dx, y + dy]);
      if (Math.hypot(dx, dy) > 6) text(NAMES[i], x + dx * 1.38, y + dy * 1.38, "center");
    }
    c.globalAlpha = 1;
  }

  function bar(camera, view, x, y) {
    const size = camera.pixel();
    const power = 10 ** Math.floor(Math.log10(150 * size));
    const length = power * [5, 2, 1].find((m) => m * power <= 150 * size);
    const [left, right] = [x + 0.5, x + length / size];
    path([left, y - 4], [left, y + 0.5], [right, y + 0.5], [right, y - 4]);
    text(`${digits(length)}${view.unit ? " " + view.unit : ""}`, x + 6, y - 9);
  }

  function legend(view, x, y) {
    const { palette, field, low, high, scale, below, middle, under, over } = view.legend;
    for (let k = 0; k < LEGEND; k++) {
      const j = 4 * Math.round((k / (LEGEND - 1)) * 255);
      c.fillStyle = `rgb(${palette[j]},${palette[j + 1]},${palette[j + 2]})`;
      c.fillRect(x + k, y - 10, 1.5, 8);
    }
    c.fillStyle = view.inkColour;
    text((under ? "≤ " : "") + digits(low), x, y + 7);
    text((over ? "≥ " : "") + digits(high), x + LEGEND, y + 7, "right");
    const half = { log: Math.sqrt(low * high), rank: middle }[scale];
    if (low < high && isFinite(half)) text(digits(half), x + LEGEND / 2, y + 7, "center");
    const how = { log: ", logarithmic", rank: ", by rank" }[scale] ?? "";
    const line = (words, at) => c.measureText(words).width > LEGEND
      ? text(words, x + LEGEND, at, "right") : text(words, x, at);
    line(field + how, y - 19);
    if (scale === "log" && below) line(`${grouped(below)} at or below 0: lowest colour`, y - 35);
  }

  function edges(camera, view) {
    const { origin, extent } = view.frameBox;
    const centre = camera.project(origin.map((x, i) => x + extent[i] / 2));
    for (let i = 0; i < 3; i++) {
      if (!(extent[i] > 0)) continue;
      const edge = outer(camera, origin, extent, i);
      if (!edge) continue;
      const { low = origin[i], high = origin[i] + extent[i], name = NAMES[i] }
        = view.named?.[i] ?? {};
      const start = camera.project(edge);
      const end = camera.project(edge.map((x, j) => (j === i ? x + extent[i] : x)));
      const long = Math.hypot(...minus(end, start).slice(0, 2));
      if (long < 40) continue;
      const away = outward(start, end, centre);
      for (const value of ticks(low, high, Math.max(1, Math.min(6, Math.round(long / 70))))) {
        const part = (value - low) / (high - low);
        const [x, y, depth] = camera.project(
          edge.map((e, j) => (j === i ? e + part * extent[i] : e)));
        if (depth > 0) tick(digits(value), x, y, away);
      }
      const [x, y] = [0, 1].map((k) => (start[k] + end[k]) / 2 + 38 * away[k]);
      if (camera.flat && i === 1 && name.length > 2) upright(name, x + 8 * away[0], y);
      else text(name, Math.max(x, 14), x < 14 ? y - 16 : y, side(away));
    }
  }

  function tick(words, x, y, away) {
    c.globalAlpha = 0.75;
    path([x, y], [x + 5 * away[0], y + 5 * away[1]]);
    const at = [x + 9 * away[0], y + 14 * away[1]];
    if (!marks.some((m) => Math.hypot(...minus(m, at)) < 12)) text(words, ...at, side(away));
    marks.push(at);
    c.globalAlpha = 1;
  }

  function upright(words, x, y) {
    c.save();
    c.translate(x, y);
    c.rotate(-Math.PI / 2);
    text(words, 0, 0, "center");
    c.restore();
  }

  // A function as columns: those of height 0 are not known.
  function curve({ x: [low, high], y: heights, names }, left, bottom, width) {
    const tall = CURVE - 62;
    const most = 1.05 * Math.max(...heights);
    const step = width / heights.length;
    c.fillRect(left, bottom, width, 1);
    c.globalAlpha = 0.6;
    for (const [k, height] of heights.entries()) {
      const h = (height / most) * tall;
      c.fillRect(left + k * step, bottom - h, Math.max(1, step - 1), h);
    }
    for (const value of ticks(low, high, Math.round(width / 150))) {
      const at = left + ((value - low) / (high - low)) * width;
      tick(digits(value, 9), at, bottom, [0, 1]);
    }
    for (const value of ticks(0, most, 3))
      tick(digits(value), left, bottom - (value / most) * tall, [-1, 0]);
    text(`${names[1]} over ${names[0]}`, left, bottom - tall - 12);
  }

  function text(words, x, y, align = "left") {
    // legible over anything
    Object.assign(c, { textAlign: align, strokeStyle: paper, lineWidth: 3 });
    c.strokeText(words, x, y);
    Object.assign(c, { strokeStyle: c.fillStyle, lineWidth: 1 });
    c.fillText(words, x, y);
  }

  return { draw, over };
}

// Where the lower left edge along axis i begins on the rim of the box as it is seen: of the two
// faces of an edge there, one is seen.
function outer(camera, origin, extent, i) {
  const eye = camera.eye();
  const [j, k] = [0, 1, 2].filter((n) => n !== i);
  const seen = (n, far) => (far ? eye[n] > origin[n] + extent[n] : eye[n] < origin[n]);
  let [best, most] = [null, -Infinity];
  for (const [a, b] of [[0, 0], [0, 1], [1, 0], [1, 1]]) {
    if (seen(j, a) === seen(k, b)) continue;
    const corner = [...origin];
    corner[j] += a * extent[j];
    corner[k] += b * extent[k];
    const [x, y, depth] = camera.project(corner.map((c, n) => (n === i ? c + extent[i] / 2 : c)));
    if (depth > 0 && y - x > most) [most, best] = [y - x, corner];
  }
  return best;
}

// How words beside an edge are aligned.
const side = ([x]) => (Math.abs(x) < 0.6 ? "center" : x > 0 ? "left" : "right");

// Across the edge on the screen, away from the box.
function outward(start, end, centre) {
  const [dx, dy] = minus(end, start);
  const long = Math.hypot(dx, dy);
  const across = [dy / long, -dx / long];
  const middle = [(start[0] + end[0]) / 2 - centre[0], (start[1] + end[1]) / 2 - centre[1]];
  const side = across[0] * middle[0] + across[1] * middle[1] < 0 ? -1 : 1;
  return across.map((x) => side * x);
}
