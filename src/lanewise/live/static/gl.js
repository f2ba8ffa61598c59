// WebGL2 by hand: programs, buffers by powers of two and three in turn, textures.

// What every shader has: the colour of a value between 0 and 1.
const HEAD = `#version 300 es
precision highp float;
uniform sampler2D map;
vec3 shade(float v) { return texture(map, vec2((v * 255.0 + 0.5) / 256.0, 0.5)).rgb; }
`;

export function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, HEAD + text);
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

// Uniforms by their kind: numbers are floats, whole numbers are given as {int: n}.
export function uniforms(gl, { made, at }, values) {
  gl.useProgram(made);
  for (const [name, value] of Object.entries(values)) {
    const place = at[name];
    if (place === undefined) continue;
    if (typeof value === "number") gl.uniform1f(place, value);
    else if ("int" in value) gl.uniform1i(place, value.int);
    else if (value.length === 16) gl.uniformMatrix4fv(place, false, value);
    else gl[`uniform${value.length}fv`](place, value);
  }
}

export function powerOfTwo(size) {
  return 2 ** Math.ceil(Math.log2(Math.max(size, 256)));
}

// Buffers in turn: what is drawn from is never written to, so drivers need not wait.
export class Ring {
  constructor(gl, turns = 3) {
    this.gl = gl;
    this.slots = Array.from({ length: turns }, () => ({ buffer: gl.createBuffer(), room: 0 }));
    this.turn = 0;
  }

  put(bytes) {
    const { gl } = this;
    this.turn = (this.turn + 1) % this.slots.length;
    const slot = this.slots[this.turn];
    gl.bindBuffer(gl.ARRAY_BUFFER, slot.buffer);
    if (slot.room < bytes.byteLength || slot.room > 8 * powerOfTwo(bytes.byteLength)) {
      slot.room = powerOfTwo(bytes.byteLength);
      gl.bufferData(gl.ARRAY_BUFFER, slot.room, gl.DYNAMIC_DRAW);
    }
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, bytes);
    return slot.buffer;
  }
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
