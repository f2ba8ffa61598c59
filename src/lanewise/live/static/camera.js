// Where the scene is seen from: around a target, upright, 42 degrees from edge to edge.
// Numbers are doubles and positions relative to the target, so that far-away boxes keep detail.

export const LENS = 2 * Math.tan((21 * Math.PI) / 180);
const AZIMUTH = (35 * Math.PI) / 180;
const ELEVATION = (16 * Math.PI) / 180;
const STEEPEST = Math.PI / 2;
const ROOM = [160, 210]; // pixels beside a flat scene, and above and below it
const TURN = (2 * Math.PI) / 60; // of its own accord, once a minute

export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) =>
  [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const scaled = (a, s) => a.map((x) => x * s);
const sum = (...all) => [0, 1, 2].map((i) => all.reduce((s, a) => s + a[i], 0));
const unit = (a) => scaled(a, 1 / Math.hypot(...a));
export const minus = (a, b) => a.map((x, i) => x - b[i]);

export class Camera {
  constructor() {
    // below: pixels that the lower rim is kept free
    Object.assign(this, { target: [0, 0, 0], distance: 3, turning: false, below: 0 });
    this.resize(1, 1);
    this.home([0, 1, 0], false);
  }

  // The direction that is up on the screen; a flat scene lies in x and y,
  // and is seen from straight ahead.
  home(up, flat) {
    this.flat = flat;
    this.up = flat ? [0, 1, 0] : unit(up);
    const side = Math.abs(this.up[2]) < 0.9 ? [0, 0, 1] : [0, -1, 0];
    this.front = unit(minus(side, scaled(this.up, dot(side, this.up))));
    this.side = cross(this.up, this.front);
    this.azimuth = flat ? 0 : AZIMUTH;
    this.elevation = flat ? 0 : ELEVATION;
  }

  // A scene that is thin along an axis is seen along it, as agents in a plane.
  face(extent) {
    const thin = extent.findIndex((x) => x < 1e-3 * Math.max(...extent));
    if (this.flat || thin < 0) return;
    const aside = Math.abs(this.side[thin]) > 0.9;
    this.azimuth = aside ? Math.PI / 2 : 0;
    this.elevation = aside || Math.abs(this.front[thin]) > 0.9 ? 0 : STEEPEST;
  }

  resize(width, height) {
    Object.assign(this, { width, height });
  }

  // Unit vectors: to the right, up and from the target to the eye.
  basis() {
    const [ca, sa] = [Math.cos(this.azimuth), Math.sin(this.azimuth)];
    const [ce, se] = [Math.cos(this.elevation), Math.sin(this.elevation)];
    const level = sum(scaled(this.front, ca), scaled(this.side, sa));
    const right = sum(scaled(this.side, ca), scaled(this.front, -sa));
    const out = sum(scaled(level, ce), scaled(this.up, se));
    return { right, up: cross(out, right), out };
  }

  eye() {
    return sum(this.target, scaled(this.basis().out, this.distance));
  }

  orbit(dx, dy) {
    this.azimuth -= dx;
    this.elevation = Math.max(-STEEPEST, Math.min(STEEPEST, this.elevation + dy));
  }

  // World units of a pixel at the target's distance.
  pixel() {
    return (this.distance * LENS) / this.height;
  }

  pan(dx, dy) {
    const { right, up } = this.basis();
    const size = this.pixel();
    this.target = sum(this.target, scaled(right, -dx * size), scaled(up, dy * size));
  }

  // What lies under (x, y), pixels from the upper left, stays there.
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.pixel();
    this.distance = Math.max(1e-30, this.distance * factor);
    const moved = (before - this.pixel()) / this.pixel();
    this.pan(-(x - this.width / 2) * moved, -(y - this.height / 2) * moved);
  }

  // The whole box is seen, whatever the direction; `flat` boxes fill the picture.
  fit(origin, extent) {
    this.target = sum(origin, scaled(extent, 0.5));
    const half = LENS / 2;
    const wide = this.width / this.height;
    if (this.flat) {
      const [w, h] = [Math.abs(dot(extent, this.side)), Math.abs(dot(extent, this.up))];
      // with room for what is written around it
      const [right, high] = [this.width, this.height - this.below]
        .map((x, k) => Math.max(0.5, 1 - ROOM[k] / x));
      const tall = this.height / (this.height - this.below);
      this.distance = Math.max((h / high) * tall, w / wide / right) / 2 / half || 1;
      this.pan(0, -this.below / 2);
    } else {
      const narrow = Math.atan(half * Math.min(1, wide));
      this.distance = ((Math.hypot(...extent) / 2) * 1.03) / Math.sin(narrow) || 1;
    }
  }

  turn(seconds) {
    if (this.turning) this.azimuth += TURN * seconds;
    return this.turning;
  }

  // Column by column, for places relative to the target; `depth`: radius of the scene.
  matrices(depth = this.distance, shift = 0) {
    const { right, up, out } = this.basis();
    const d = this.distance;
    const view = new Float32Array([
      right[0], up[0], out[0], 0, right[1], up[1], out[1], 0, right[2], up[2], out[2], 0,
      -shift, 0, -d, 1,
    ]);
    const far = d + 4 * Math.max(depth, d * 1e-3);
    const near = Math.max(d - 2 * depth, d * 1e-3, far * 2e-5);
    const f = 2 / LENS;
    const projection = new Float32Array([
      (f * this.height) / this.width, 0, 0, 0, 0, f, 0, 0,
      0, 0, (far + near) / (near - far), -1, 0, 0, (2 * far * near) / (near - far), 0,
    ]);
    // both eyes meet at the target
    if (shift) projection[8] = (-shift / d) * projection[0];
    return { view, projection };
  }

  // Pixels from the upper left, and the distance before the eye (negative: behind it).
  project(place) {
    const { right, up, out } = this.basis();
    const away = minus(place, this.target);
    const depth = this.distance - dot(away, out);
    const factor = this.height / (LENS * depth);
    return [
      this.width / 2 + dot(away, right) * factor,
      this.height / 2 - dot(away, up) * factor,
      depth,
    ];
  }
}
