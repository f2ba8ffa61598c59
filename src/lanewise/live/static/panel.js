// Controls beside the picture: made from lists, changed by hand or by key, shown as they are.
import { MAPS, SCALES } from "./table.js";

export const $ = (id) => document.getElementById(id);

export function element(tag, values = {}, ...inside) {
  const made = Object.assign(document.createElement(tag), values);
  made.append(...inside);
  return made;
}

const KEYS = [
  ["Space", "pause, or go on"],
  ["→  ←", "a step on; a frame back (Page keys: ten)"],
  ["End", "the newest frame"],
  ["Z or F", "fit the picture"],
  ["Shift + arrows", "orbit"], ["W A S D", "move"], ["+  −", "zoom"],
  ["O", "turn slowly"], ["C", "next colour"], ["M", "next colour map"],
  ["L", "next scale of colours"], ["V", "fit colours"], ["T", "tails"],
  ["B", "boxes of the tree"],
  ["P", "picture"], ["R", "film"], ["X", "full screen"], ["Esc", "follow no longer"],
  ["H", "this help"],
];

const CHECK = "checkbox";
// [key in settings, label, kind or choices, for which kinds of frames]
const CONTROLS = {
  Colour: [
    ["field", "By", []],
    ["scale", "Scale", SCALES],
    ["map", "Map", Object.keys(MAPS)],
    ["reversed", "Reversed", CHECK],
    ["low", "From", "number"],
    ["high", "To", "number"],
  ],
  Points: [
    ["size", "Size", [0.5, 16, 0.5], "points arrows"],
    ["style", "Style", ["opaque", "glow"], "points"],
    ["opacity", "Opacity", [0.02, 1, 0.02], "points"],
    ["massive", "Larger", CHECK, "points"],
    ["tails", "Tails", [0, 64, 1], "points arrows"],
    ["boxes", "Tree", CHECK, "boxes"],
  ],
  Field: [
    ["slices", "Slice", CHECK, "slice"],
    ["axis", "Across", [..."xyz"], "slice"],
    ["place", "At", [0, 1, 0.01], "slice"],
    ["smooth", "Smooth", CHECK, "slice"],
    ["volume", "Volume", ["none", "walls", "maximum", "emission"], "volume"],
    ["density", "Density", [0.02, 1, 0.02], "volume"],
  ],
  View: [
    ["turning", "Turn", CHECK],
    ["fitting", "Keep fitted", CHECK],
    ["rate", "Frames/s", [1, 60, 1]],
    ["axes", "Axes", CHECK],
    ["stereo", "Red-cyan", CHECK],
    ["theme", "Theme", ["system", "light", "dark"]],
    ["times", "Picture", ["1x", "2x", "3x", "4x"]],
  ],
};

// When a control does something, as settings are.
const sliced = (s) => s.slices;
const USED = {
  opacity: (s) => s.style === "glow",
  density: (s) => ["maximum", "emission"].includes(s.volume),
  axis: sliced, place: sliced, smooth: sliced,
};

export class Panel {
  constructor(settings, actions) {
    this.settings = settings;
    this.actions = actions;
    this.rows = {};
    for (const [name, rows] of Object.entries(CONTROLS)) {
      const set = element("fieldset", {}, element("legend", { textContent: name }));
      for (const row of rows) set.append(this.row(...row));
      $("panel").append(set);
    }
    const buttons = [["fit"], ["refit", "Fit colours"], ["picture"], ["film"],
      ["screen", "Full screen"]];
    $("panel").lastChild.append(element("div", { className: "row many" },
      ...buttons.map((names) => this.button(...names))));
    $("panel").onsubmit = () => false;
    $("open").onclick = () => {
      const shown = $("panel").classList.toggle("shown");
      $("open").ariaExpanded = shown;
    };
    this.transport();
    this.help();
  }

  button(name, words = name[0].toUpperCase() + name.slice(1), title = "") {
    const made = element("button", { type: "button", textContent: words, title,
      ariaLabel: title || null, onclick: () => this.actions[name]() });
    this.rows[name] = { input: made };
    return made;
  }

  row(key, label, kind, kinds = "") {
    let input;
    const slider = typeof kind[0] === "number";
    if (typeof kind === "string") {
      input = element("input", { type: kind, step: "any", placeholder: "automatic" });
    } else if (slider) {
      const [min, max, step] = kind;
      input = element("input", { type: "range", min, max, step });
    } else input = element("select");
    const read = () => ({ checkbox: input.checked, "select-one": input.value })[input.type]
      ?? (input.value ? +input.value : null);
    input.id = `set-${key}`;
    input[slider ? "oninput" : "onchange"] = () => this.actions.set(key, read());
    const row = element("div", { className: "row" },
      element("label", { htmlFor: input.id, textContent: label }), input);
    this.rows[key] = { row, input, kinds: kinds.split(" ") };
    if (input.localName === "select") this.choices(key, kind);
    this.show(key);
    return row;
  }

  choices(key, values) {
    this.rows[key].input.replaceChildren(...values.map((v) => new Option(v, v)));
    this.show(key);
  }

  show(key) {
    const { input } = this.rows[key];
    const value = this.settings[key];
    if (input.type === CHECK) input.checked = value;
    else if (document.activeElement !== input || input.type !== "number") input.value = value ?? "";
  }

  // Controls of kinds of frames that the run does not send are left out.
  kinds(kinds) {
    for (const { row, kinds: mine } of Object.values(this.rows))
      if (row && mine[0]) row.hidden = !mine.some((k) => kinds.includes(k));
    for (const set of $("panel").querySelectorAll("fieldset"))
      set.hidden = [...set.querySelectorAll(".row")].every((row) => row.hidden);
  }

  transport() {
    const scrub = element("input", { type: "range", min: 0, max: 0, value: 0, id: "scrub",
      ariaLabel: "History", oninput: () => this.actions.seek(+scrub.value) });
    $("transport").append(
      this.button("pause", "Pause"), this.button("back", "‹", "A frame back"),
      this.button("step", "›", "A step on"), scrub, this.button("replay", "Replay"),
      this.button("live", "Live", "The newest frame"),
      this.button("help", "?", "Keys"));
  }

  // What the run is doing, as the server said it.
  state({ paused, ended, readonly, history, past, frame, replaying, fields, heard, alone }) {
    const off = (key, why) => (this.rows[key].input.disabled = !!(alone || why));
    const idle = (key) => USED[key] && !USED[key](this.settings);
    const { pause, live, replay } = this.rows;
    pause.input.textContent = ended ? "Ended" : paused ? "Run" : "Pause";
    for (const key in USED) this.rows[key].input.disabled = idle(key);
    for (const key of [...heard, "live"]) off(key, idle(key));
    off("refit", !fields.length);
    off("pause", readonly);
    off("step", readonly && !past);
    live.input.ariaPressed = !past;
    replay.input.ariaPressed = !!replaying;
    const [oldest, newest] = history ?? [0, 0];
    off("back", newest <= oldest);
    off("replay", newest <= oldest);
    const scrub = $("scrub");
    Object.assign(scrub, { min: oldest, max: newest, disabled: replay.input.disabled });
    if (document.activeElement !== scrub || !past) scrub.value = past ? frame : newest;
  }

  help() {
    const close = element("button", { textContent: "Close", onclick: () => $("help").close() });
    $("help").append(table(KEYS), element("p", {
      textContent: "Drag: orbit. Right button or Shift, or two fingers: move. Wheel: zoom to the " +
        "pointer. Click: follow what is there.",
    }), close);
  }
}

export function table(rows) {
  return element("table", {}, ...rows.map(([name, value]) => element("tr", {},
    element("th", { textContent: name, scope: "row" }), element("td", { textContent: value }))));
}
