// The page: wires the feed, the scene, the camera and the controls together.
import { Camera } from "./camera.js";
import { Film, composed, save } from "./film.js";
import { CURVE, inked } from "./ink.js";
import { listen } from "./input.js";
import { digits, grouped } from "./lines.js";
import { $, Panel, table } from "./panel.js";
import { Feed } from "./protocol.js";
import { Scene, nearest, palette, placeOf } from "./scene.js";
import { MAPS, SCALES } from "./table.js";

const settings = {
  field: "", scale: "linear", map: "", reversed: false, low: null, high: null,
  size: 3, style: "opaque", opacity: 0.35, massive: false, tails: 0, boxes: false, slices: true,
  axis: "z", place: 0.5, smooth: true, volume: "none", density: 0.5, turning: false,
  fitting: false, axes: true, stereo: false, theme: "system", times: "2x", rate: 30,
};
const NOTHING = { kinds: [], fields: [], up: [0, 1, 0] };
const about = { ...NOTHING };
const run = {};
const counted = { since: -Infinity };
const camera = new Camera();
let scene, ink, feed, panel, film, followed;
let fitted, wanted; // a new picture
let before = 0;

function colours() {
  const { backgroundColor: paper, color: inkColour } = getComputedStyle(document.body);
  const background = paper.match(/\d+/g).map((x) => x / 255);
  const dark = background[0] < 0.5;
  return { dark, background, inkColour, paper,
    edges: dark ? [0.6, 0.7, 0.8, 0.28] : [0.1, 0.15, 0.2, 0.28],
    solid: dark ? [0.36, 0.39, 0.43] : [0.72, 0.74, 0.77] };
}

// [origin, extent] of the run's box, else of what is there.
function domain() {
  if (!about.domain) return scene.bounds();
  const [low, high] = about.domain;
  return [low, high.map((x, i) => x - low[i])];
}

function look(pixels = 1) {
  const [origin, extent] = scene.bounds();
  const [low, size] = domain();
  const frameBox = { origin: low, extent: size };
  const { target } = camera;
  const middle = origin.map((x, i) => x + extent[i] / 2 - target[i]);
  return {
    ...settings, ...colours(), camera, pixels, up: about.up, arrow: about.arrow,
    radius: Math.hypot(...middle) + Math.hypot(...frameBox.extent) / 2 + 1e-30,
    frameBox: settings.axes && frameBox, named: about.axes, unit: about.unit,
    distance: camera.distance,
    eye: camera.eye(), followed: followed?.place, legend: legend(), curve: run.curve,
    box: (f) => ({ origin: f.origin.map((x, i) => x - target[i]), extent: f.extent }),
  };
}

function legend() {
  const frame = scene.seen();
  if (!frame?.count || !(frame.high >= frame.low)) return null;
  const { field = "value", colours } = run;
  const map = palette(settings.map, settings.reversed);
  return { ...frame, ...colours, palette: map, field, scale: SCALES[frame.scale] };
}

function resize() {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const { clientWidth, clientHeight } = $("scene");
  for (const id of ["scene", "ink"]) {
    const [width, height] = [clientWidth, clientHeight].map((x) => Math.round(x * ratio));
    Object.assign($(id), { width, height });
  }
  camera.resize(clientWidth, clientHeight);
  wanted = true;
}

function fit() {
  camera.below = run.curve ? CURVE : 0;
  camera.fit(...domain());
  wanted = true;
}

function paint() {
  const ratio = $("scene").width / camera.width;
  const view = look(ratio);
  scene.draw(view, $("scene").width, $("scene").height);
  ink.draw(ratio, camera, view);
  film?.add();
}

function tick(now) {
  requestAnimationFrame(tick);
  const begun = performance.now();
  const moved = camera.turn(Math.min(0.1, (now - before) / 1000));
  before = now;
  if (scene.gl.isContextLost()) return;
  const done = scene.upload(settings);
  if (done.length) arrived();
  if (done.length || moved || wanted || film) {
    wanted = false;
    paint();
  }
  for (const frame of done) feed.ack(frame, performance.now() - begun, done.length - 1);
}

// After new frames have come.
function arrived() {
  const cloud = scene.cloud();
  const frame = scene.seen();
  if (followed && cloud && followed.row < cloud.count && followed.order === cloud.order) {
    followed.place = placeOf(cloud, followed.row);
    camera.target = followed.place;
    if (!frame.past) feed.soon(followed.wish, 250);
  }
  if (!fitted && cloud) camera.face(scene.bounds()[1]);
  if (!fitted || settings.fitting) fit();
  fitted = true;
  Object.assign(run, { past: frame.past, frame: frame.sequence });
  if (!frame.past) {
    run.step = frame.step;
    run.history = [run.history?.[0] || frame.sequence, frame.sequence];
  }
  refresh();
}

// Nobody hears: the run has ended, or is out of reach.
const alone = () => run.ended || run.link !== "open";

const joined = (words) => words.filter(Boolean).join(" · ");

const stepped = (step) => `${about.counts ?? "step"} ${grouped(step)}`;

function refresh() {
  const { step, time, past } = scene.seen() ?? {};
  const timed = isFinite(time) && time && time !== step && `time ${digits(time, 6)}`;
  $("moment").textContent = step === undefined ? ""
    : joined([stepped(step), timed, past ? "history" : run.paused && "paused"]);
  wanted = true;
  panel.state({ ...about, ...run, heard: Object.keys(SENT), alone: alone() });
  say();
}

function say() {
  const now = performance.now();
  const spent = (now - counted.since) / 1000;
  if (spent > 1) {
    const mega = counted.bytes / 1e6 / spent;
    counted.words = counted.frames
      ? `${digits(counted.frames / spent, 2)} frames/s · ${digits(mega, 3)} MB/s` : "";
    Object.assign(counted, { frames: 0, bytes: 0, since: now });
  }
  const cloud = scene.cloud();
  const part = cloud?.count < cloud?.total ? `${grouped(cloud.count)} of ` : "";
  const shown = cloud && `${part}${grouped(cloud.total)} point${cloud.total - 1 ? "s" : ""}`;
  const still = run.paused || alone();
  const told = Object.entries(run.statistics ?? {}).map(([name, x]) =>
    x && !(still && name === "steps/s") && `${name} ${digits(x)}`);
  $("statistics").textContent = joined([...told, shown, !alone() && counted.words]);
}

const on = {
  frame(frame) {
    counted.frames += frame.kind !== "suffix" && frame.kind !== "statistics";
    counted.bytes += frame.body.byteLength;
    if (frame.kind === "statistics") {
      const { curve, field, colours, ...told } = JSON.parse(new TextDecoder().decode(frame.body));
      run.statistics = { ...run.statistics, ...told };
      run.field = field ?? run.field;
      if (colours) {
        run.colours = colours;
        wanted = true;
      }
      if (curve) {
        if (!run.curve) fitted = false;
        run.curve = curve;
      }
      say();
    } else scene.take(frame);
  },

  text(message) {
    const { is, ...values } = message;
    if (is === "welcome") welcome(values);
    else if (is === "state") state(values);
    else if (is === "picked" && followed) showPicked(values);
    else if (is === "error") {
      run.range = null; // which the next state says again
      notice(values.text);
    }
  },

  link(name, words) {
    run.link = name;
    $("link").dataset.state = name;
    $("link").textContent = words;
    if (name === "refused") notice(`This address was ${words}.`);
    if (name === "open") notice("");
    refresh();
  },
};

function welcome(values) {
  const first = !about.title;
  for (const key in about) delete about[key];
  Object.assign(about, NOTHING, values);
  document.title = $("title").textContent = about.title;
  panel.kinds(about.kinds);
  for (const key of ["axis", "place"]) if (about.flat) panel.rows[key].row.hidden = true;
  panel.choices("field", about.fields);
  // recordings are as they are
  for (const key of ["field", "scale", "low", "high"])
    panel.rows[key].row.hidden = !about.fields.length;
  if (first) camera.home(about.up, !!about.flat);
  // viridis begins too dark for points on a dark page
  const light = !colours().dark || about.kinds.includes("slice");
  if (!settings.map) actions.set("map", light ? "viridis" : "ember");
  // the most that comes; a new connection does not know what was chosen
  const { rate = 30 } = about;
  Object.assign(panel.rows.rate.input, { min: Math.min(1, rate), max: rate });
  if (first) shown({ rate });
  else feed.send(SENT.rate(settings.rate));
  show();
  state(values);
}

function state(values) {
  const { field, scale, range, slice } = values;
  if (field) shown({ field });
  if (scale) shown({ scale });
  // of two ends, the one typed first waits
  if (range && `${range}` !== `${run.range}`) shown({ low: range[0], high: range[1] });
  if (slice) shown({ axis: "xyz"[slice.axis], place: slice.place });
  Object.assign(run, values);
  feed.over = run.ended;
  if (run.ended) on.link("ended", `the ${about.replay ? "view" : "run"} has ended`);
  refresh();
}

// Controls show what holds.
function shown(values) {
  Object.assign(settings, values);
  for (const key in values) panel.show(key);
}

// Kinds that are not looked at need not be sent.
function show() {
  const left = [!settings.slices && "slice", settings.volume === "none" && "volume",
    !settings.boxes && "boxes"];
  feed.send({ do: "show", kinds: about.kinds.filter((kind) => !left.includes(kind)) });
}

function notice(words) {
  Object.assign($("notice"), { textContent: words, hidden: !words, className: "" });
}

function pick(x, y) {
  const cloud = scene.cloud();
  const best = cloud ? nearest(cloud, camera, x, y) : -1;
  if (best < 0) return leave();
  const wish = { do: "pick", row: best, order: cloud.order };
  followed = { ...wish, wish, place: placeOf(cloud, best) };
  feed.send(wish);
  showPicked({ fields: {} });
  wanted = true;
}

function leave() {
  followed = undefined;
  $("picked").hidden = true;
  wanted = true;
}

function showPicked({ fields, step }) {
  const { row, ...rest } = fields;
  const rows = Object.entries(rest).map(([name, value]) => [name,
    Array.isArray(value) ? value.map((v) => digits(v)).join(", ") : digits(value, 7)]);
  const at = step ? `, ${stepped(step)}` : "";
  const name = `Element ${row === undefined ? "" : grouped(row)}${at}`;
  $("picked").replaceChildren(name, table(rows));
  $("picked").hidden = false;
}

// A canvas with what is seen, so many times as large.
function picture(wished) {
  const most = scene.gl.getParameter(scene.gl.MAX_RENDERBUFFER_SIZE);
  const times = Math.min(wished, Math.floor(most / Math.max(camera.width, camera.height)));
  const [width, height] = [camera.width * times, camera.height * times];
  const view = look(times);
  wanted = true;
  return composed(scene.read(view, width, height), width, height, (context) =>
    inked(context).over(times, camera, view));
}

const SENT = {
  field: (field) => ({ do: "colour", field }),
  scale: (name) => ({ do: "scale", name }),
  rate: (n) => ({ do: "rate", n }),
  low: range, high: range,
  axis: slice, place: slice,
};

function range() {
  const { low, high } = settings;
  return low === null || high === null ? { do: "range", auto: true } : { do: "range", low, high };
}

function slice() {
  return { do: "slice", axis: "xyz".indexOf(settings.axis), place: settings.place };
}

const actions = {
  set(key, value) {
    if (key in SENT && alone()) return panel.show(key);
    shown({ [key]: value });
    notice("");
    if (key in SENT) feed.soon(SENT[key](value));
    if (["slices", "volume", "boxes"].includes(key)) show();
    if (key === "turning") camera.turning = value;
    if (key === "theme") document.documentElement.style.colorScheme = value.replace("system", "");
    refresh();
  },
  refit() {
    if (!alone()) shown({ high: null });
    actions.set("low", null);
  },
  fit,
  pause: () => run.ended || about.readonly || feed.send({ do: run.paused ? "run" : "pause" }),
  step: () => move(1),
  back: () => move(-1),
  seek: (frame) => feed.soon({ do: "seek", frame }),
  live() {
    clearInterval(run.replaying);
    run.replaying = 0;
    actions.seek(-1);
  },
  replay() {
    if (run.replaying) run.replaying = clearInterval(run.replaying);
    else {
      if (!run.past) actions.seek(run.history[0]);
      const on = () => (run.frame < run.history[1] ? move(1) : actions.live());
      run.replaying = setInterval(on, 40);
    }
    refresh();
  },
  picture() {
    const canvas = picture(parseInt(settings.times));
    const name = `${about.product ?? "lanewise"}-${run.frame ?? 0}.png`;
    canvas.toBlob((blob) => save(blob, name), "image/png");
  },
  async film() {
    if (film) {
      const blob = await film.stop();
      film = undefined;
      if (blob.size) save(blob, `${about.product ?? "lanewise"}.${blob.type.split("/")[1]}`);
      else notice("The film is empty: nothing was drawn.");
    } else if (window.MediaRecorder) film = new Film([$("scene"), $("ink")]);
    else notice("This browser cannot record films: it has no MediaRecorder.");
    const textContent = film ? "Stop" : "Film";
    Object.assign(panel.rows.film.input, { ariaPressed: !!film, textContent });
  },
  screen: () => document.fullscreenElement ? document.exitFullscreen()
    : document.documentElement.requestFullscreen(),
  help: () => ($("help").open ? $("help").close() : $("help").showModal()),
};

// Among what is kept; from the newest frame on, steps of the run.
function move(n) {
  const [oldest, newest] = run.history ?? [0, 0];
  const frame = Math.max(oldest, (run.frame ?? 0) + n);
  if (n < 0 || (run.past && frame < newest)) actions.seek(frame);
  else if (run.past) actions.live();
  else if (!about.readonly) feed.send({ do: "step", n });
}

const KEYS = {
  " ": actions.pause, ArrowRight: () => move(1), ArrowLeft: () => move(-1),
  PageUp: () => move(-10), PageDown: () => move(10), End: actions.live,
  z: fit, f: fit, h: actions.help, "?": actions.help, p: actions.picture, r: actions.film,
  x: actions.screen, Escape: leave,
  c: () => next("field", about.fields), m: () => next("map", Object.keys(MAPS)),
  v: actions.refit,
  l: () => next("scale", about.fields.length ? SCALES : []),
  t: () => actions.set("tails", settings.tails ? 0 : 32),
  b: () => about.kinds.includes("boxes") && actions.set("boxes", !settings.boxes),
  o: () => actions.set("turning", !settings.turning),
};

function next(key, values) {
  if (values.length) actions.set(key, values[(values.indexOf(settings[key]) + 1) % values.length]);
}

function start() {
  const canvas = $("scene");
  try {
    scene = new Scene(canvas);
  } catch (error) {
    notice(`This browser gives no WebGL2 (${error.message}). Turn hardware acceleration on in ` +
      "its settings, update it, or open the address in another one.");
    return;
  }
  ink = inked($("ink").getContext("2d"));
  panel = new Panel(settings, actions);
  addEventListener("error", ({ message }) => notice(message));
  const redraw = () => (wanted = true);
  listen(canvas, camera, KEYS, redraw, pick);
  addEventListener("resize", resize);
  matchMedia("(prefers-color-scheme: dark)").onchange = redraw;
  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", () => {
    scene.build();
    wanted = true;
  });
  resize();
  feed = new Feed(on);
  requestAnimationFrame(tick);
}

start();

// For tests.
window.lanewise = {
  settings, camera, run, about, actions, look, picture, palette,
  get scene() { return scene; }, get feed() { return feed; },
};
