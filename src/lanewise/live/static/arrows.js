// Arrows: a cone of three sides for each agent, along its heading, lit from above.
import { cloud } from "./gl.js";

const VERTEX = `
layout(location=0) in vec4 place;
layout(location=1) in vec2 heading;
uniform vec3 upward;
uniform float lengths;
out vec3 colour;
// nose, three corners of the tail; three sides and the end
const int CORNERS[12] = int[12](0, 1, 2, 0, 2, 3, 0, 3, 1, 1, 3, 2);
vec3 octahedral(vec2 e) {
  vec2 f = e * 2.0 - 1.0;
  vec3 v = vec3(f, 1.0 - abs(f.x) - abs(f.y));
  if (v.z < 0.0) v.xy = (1.0 - abs(v.yx)) * vec2(v.x < 0.0 ? -1.0 : 1.0, v.y < 0.0 ? -1.0 : 1.0);
  return normalize(v);
}
vec3 corner(int k, vec3 ahead, vec3 left, vec3 above) {
  if (k == 0) return 0.62 * ahead;
  float turn = 2.0943951 * float(k) + 1.5707963;
  return -0.38 * ahead + 0.26 * (cos(turn) * left + sin(turn) * above);
}
void main() {
  vec3 ahead = octahedral(heading);
  vec3 other = abs(dot(ahead, upward)) > 0.98 ? upward.yzx : upward;
  vec3 left = normalize(cross(other, ahead)), above = cross(ahead, left);
  int side = gl_VertexID / 3 * 3;
  vec3 a = corner(CORNERS[side], ahead, left, above);
  vec3 b = corner(CORNERS[side + 1], ahead, left, above);
  vec3 c = corner(CORNERS[side + 2], ahead, left, above);
  vec3 normal = normalize(cross(b - a, c - a));
  vec3 mine = corner(CORNERS[gl_VertexID], ahead, left, above);
  gl_Position = seen(origin + place.xyz * extent + lengths * mine);
  float light = 0.68 + 0.32 * dot(normal, normalize(upward + 0.35 * upward.yzx));
  colour = light * shade(place.w);
}`;

const FRAGMENT = `
in vec3 colour;
void main() { ink = vec4(colour, 1.0); }`;

export function arrows(gl) {
  const rows = cloud(gl, VERTEX, FRAGMENT, [[0, 4, 0], [1, 2, 8]], 1);
  const draw = (look, frame) => {
    // as long as the scene says, but never too small to be seen
    const lengths = (Math.max(look.arrow ?? 0, 9 * look.camera.pixel()) * look.size) / 3;
    rows.draw(look, { ...look.box(frame), upward: look.up, lengths }, null,
      () => gl.drawArraysInstanced(gl.TRIANGLES, 0, 12, frame.count));
  };
  return { set: rows.set, draw };
}
