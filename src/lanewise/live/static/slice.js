// Slices: a field on a plane, as a texture in the scene.
import { layer, texture } from "./gl.js";

const VERTEX = `
uniform vec3 across, along;
out vec2 at;
void main() {
  at = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = seen(origin + at.x * across + at.y * along);
}`;

const FRAGMENT = `
in vec2 at;
uniform sampler2D field;
uniform float walls, low, scale;
uniform vec3 solid;
void main() {
  float raw = texture(field, at).r;
  // between a wall and the fluid the nearer of the two is seen
  ivec2 size = textureSize(field, 0);
  float here = texelFetch(field, min(ivec2(at * vec2(size)), size - 1), 0).r;
  if (walls > 0.5 && here == 0.0) { ink = vec4(solid, 1.0); return; }
  if (walls > 0.5) raw = max(raw, 1.0 / 255.0);
  float value = clamp((raw - low) * scale, 0.0, 1.0);
  ink = vec4(shade(value), 1.0);
}`;

export function slice(gl) {
  const plane = layer(gl, VERTEX, FRAGMENT);
  const image = texture(gl, gl.TEXTURE_2D, gl.LINEAR);

  const set = ({ width: w, height: h, body }) => {
    gl.bindTexture(gl.TEXTURE_2D, image);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R8, w, h, 0, gl.RED, gl.UNSIGNED_BYTE, body);
  };

  const draw = (look, frame) => {
    const { origin, extent } = look.box(frame);
    const [across, along] = [0, 1, 2].filter((i) => i !== frame.axis)
      .map((i) => extent.map((x, j) => (j === i ? x : 0)));
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, image);
    for (const which of [gl.TEXTURE_MAG_FILTER, gl.TEXTURE_MIN_FILTER])
      gl.texParameteri(gl.TEXTURE_2D, which, look.smooth ? gl.LINEAR : gl.NEAREST);
    const low = frame.walls ? 1 / 255 : 0;
    const values = { origin, across, along, walls: frame.walls, solid: look.solid, low,
      scale: 1 / (1 - low) };
    plane.draw(look, values, null, () => gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4));
  };
  return { set, draw };
}
