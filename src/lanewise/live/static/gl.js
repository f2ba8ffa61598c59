// WebGL2 by hand: programs, buffers by powers of two and three in turn, textures.

// In every shader: the colour of a value from 0 to 1. Vertices lie in the box of a frame.
const HEAD = `#version 300 es
precision highp float;
uniform sampler2D map;
vec3 shade(float v) { return texture(map, vec2((v * 255.0 + 0.5) / 256.0, 0.5)).rgb; }
`;
const VERTEX = `${HEAD}
uniform mat4 view, projection;
uniform vec3 origin, extent;
vec4 seen(vec3 at) { return projection * view * vec4(at, 1.0); }
`;
const FRAGMENT = `${HEAD}out vec4 ink;
`;

function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  const parts = [[gl.VERTEX_SHADER, VERTEX + vertex], [gl.FRAGMENT_SHADER, FRAGMENT + fragment]];
  for (const [kind, text] of parts) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost())
      throw new Error(gl.getShaderInfoLog(shader));
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost())
    throw new Error(gl.getProgramInfoLog(made));
  const at = {};
  const count = gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS) ?? 0;
  for (let i = 0; i < count; i++) {
    const { name } = gl.getActiveUniform(made, i);
    at[name] = gl.getUniformLocation(made, name);
  }
  return { made, at };
}

// Uniforms by their kind: numbers and truths are floats.
function uniforms(gl, { made, at }, values) {
  gl.useProgram(made);
  if (at.field) gl.uniform1i(at.field, 1);
  for (const [name, value] of Object.entries(values)) {
    const place = at[name];
    if (place === undefined) continue;
    if (value.length === 16) gl.uniformMatrix4fv(place, false, value);
    else if (value.length) gl[`uniform${value.length}fv`](place, value);
    else gl.uniform1f(place, value);
  }
}

// How what is drawn meets what is there. Colours are multiplied by their opacity already.
function blending(gl, how) {
  if (how) gl.enable(gl.BLEND);
  else gl.disable(gl.BLEND);
  gl.depthMask(!how);
  gl.blendFunc(gl.ONE, how === "add" ? gl.ONE : gl.ONE_MINUS_SRC_ALPHA);
}

// A program with the state that it draws with: `draw` sets uniforms, and has `act` draw.
export function layer(gl, vertex, fragment) {
  const made = program(gl, vertex, fragment);
  const array = gl.createVertexArray();
  const within = (act) => {
    gl.bindVertexArray(array);
    act();
    gl.bindVertexArray(null);
  };
  const draw = (look, values, how, act) => {
    blending(gl, how);
    uniforms(gl, made, { ...look.matrices, ...values });
    within(act);
    blending(gl);
  };
  return { within, draw };
}

// The same for the rows of a cloud, which have attributes (see there).
export function cloud(gl, vertex, fragment, parts, divisor) {
  const { within, draw } = layer(gl, vertex, fragment);
  // buffers in turn: what is drawn from is never written to, so drivers need not wait
  const slots = [{}, {}, {}];
  const set = ({ body, stride }) => {
    slots.push(slots.shift());
    within(() => attributes(gl, fill(gl, slots[0], body), stride, parts, divisor));
  };
  return { set, draw };
}

// A buffer with these bytes, whose room stays where it is about right.
export function fill(gl, slot, bytes) {
  const room = 2 ** Math.ceil(Math.log2(Math.max(bytes.byteLength, 256)));
  gl.bindBuffer(gl.ARRAY_BUFFER, (slot.buffer ??= gl.createBuffer()));
  if (!(slot.room >= room && slot.room <= 8 * room))
    gl.bufferData(gl.ARRAY_BUFFER, (slot.room = room), gl.DYNAMIC_DRAW);
  gl.bufferSubData(gl.ARRAY_BUFFER, 0, bytes);
  return slot.buffer;
}

// Attributes (location, components, first byte) of unsigned 16-bit numbers as fractions of 1.
export function attributes(gl, buffer, stride, parts, divisor = 0) {
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  for (const [location, components, first] of parts) {
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, components, gl.UNSIGNED_SHORT, true, stride, first);
    gl.vertexAttribDivisor(location, divisor);
  }
}

export function texture(gl, target, filter) {
  const made = gl.createTexture();
  gl.bindTexture(target, made);
  gl.texParameteri(target, gl.TEXTURE_MIN_FILTER, filter);
  gl.texParameteri(target, gl.TEXTURE_MAG_FILTER, filter);
  for (const edge of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T, gl.TEXTURE_WRAP_R])
    gl.texParameteri(target, edge, gl.CLAMP_TO_EDGE);
  return made;
}
