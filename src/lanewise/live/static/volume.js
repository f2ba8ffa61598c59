// Volumes: rays through a 3-D texture; the largest value, or light that the fluid sends out.
// Walls are the faces that rays meet, lit from above.
import { layer, texture } from "./gl.js";

const VERTEX = `
out vec3 at;
const int CORNERS[36] = int[36](0,2,1,1,2,3, 4,5,6,5,7,6, 0,1,4,1,5,4, 2,6,3,3,6,7, 0,4,2,2,4,6,
  1,3,5,3,7,5);
void main() {
  int k = CORNERS[gl_VertexID];
  at = vec3(k & 1, (k >> 1) & 1, k >> 2);
  gl_Position = seen(origin + at * extent);
}`;

const FRAGMENT = `
in vec3 at;
uniform highp sampler3D field;
uniform vec3 eye, solid, upward;
uniform vec4 plane;
uniform float walls, emission, density, steps;
float fluid(vec3 p) { return min(1.0, 64.0 * texture(field, p).r); }
void main() {
  // back faces start the ray: from where it enters, or from the eye inside the box
  vec3 ray = at - eye;
  vec3 t0 = (vec3(0.0) - eye) / ray, t1 = (vec3(1.0) - eye) / ray;
  vec3 near = min(t0, t1);
  float enter = max(max(max(near.x, near.y), near.z), 0.0);
  // a slice ends it
  float end = (plane.w - dot(plane.xyz, eye)) / dot(plane.xyz, ray);
  end = end > 0.0 && end < 1.0 ? end : 1.0;
  if (enter >= end) discard;
  vec3 size = vec3(textureSize(field, 0));
  float count = clamp(length((end - enter) * ray * size) * 1.2, 2.0, steps);
  float part = (end - enter) / count;
  float lift = fract(sin(dot(gl_FragCoord.xy, vec2(12.9898, 78.233))) * 43758.5453);
  float most = 0.0, left = 1.0;
  vec3 light = vec3(0.0);
  bool hit = false, found = false;
  for (float k = 0.0; k < steps; k += 1.0) {
    if (k >= count || left < 0.01) break;
    vec3 p = eye + (enter + (k + lift) * part) * ray;
    float v = texture(field, p).r;
    if (walls > 0.5 && texelFetch(field, ivec3(clamp(p, 0.0, 0.99999) * size), 0).r == 0.0) {
      vec3 slope = vec3(0.0);
      for (int i = 0; i < 3; i++) {
        vec3 h = vec3(0.0);
        h[i] = 2.0 / size[i];
        slope[i] = fluid(p + h) - fluid(p - h);
      }
      vec3 normal = length(slope) > 1e-4 ? normalize(slope) : -normalize(ray);
      float lit = 0.55 + 0.45 * max(0.0, dot(normal, normalize(upward - 0.6 * normalize(ray))));
      light += left * solid * lit;
      left = 0.0;
      hit = true;
      break;
    }
    float value = walls > 0.5 ? clamp((v * 255.0 - 1.0) / 254.0, 0.0, 1.0) : v;
    if (emission > 0.5) {
      float a = 1.0 - exp(-density * value * value * part * length(ray) * 24.0);
      light += left * a * shade(value);
      left *= 1.0 - a;
    } else if (value > most) {
      most = value;
      found = true;
    }
  }
  if (emission > 0.5) { ink = vec4(light, 1.0 - left); return; }
  vec3 c = shade(most);
  float a = found ? smoothstep(0.0, 0.6, most) * min(1.0, 0.35 + density) : 0.0;
  ink = hit ? vec4(mix(light, c, 0.5 * a), 1.0) : vec4(c * a, a);
}`;

export function volume(gl) {
  const box = layer(gl, VERTEX, FRAGMENT);
  const image = texture(gl, gl.TEXTURE_3D, gl.LINEAR);
  let size = "";

  const set = ({ width: w, height: h, depth: d, body }) => {
    gl.bindTexture(gl.TEXTURE_3D, image);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    const now = [w, h, d].join();
    if (size !== now)
      gl.texImage3D(gl.TEXTURE_3D, 0, gl.R8, w, h, d, 0, gl.RED, gl.UNSIGNED_BYTE, body);
    else gl.texSubImage3D(gl.TEXTURE_3D, 0, 0, 0, 0, w, h, d, gl.RED, gl.UNSIGNED_BYTE, body);
    size = now;
  };

  // In front of the slice drawn before, if any.
  const draw = (look, frame, cut) => {
    const place = (x, i) => (x - frame.origin[i]) / frame.extent[i];
    const plane = [0, 0, 0, 2];
    if (cut) {
      plane[cut.axis] = 1;
      plane[3] = place(cut.origin[cut.axis], cut.axis);
    }
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_3D, image);
    gl.enable(gl.CULL_FACE);
    gl.cullFace(gl.FRONT);
    gl.disable(gl.DEPTH_TEST);
    const values = {
      ...look.box(frame), eye: look.eye.map(place), plane, walls: frame.walls,
      emission: look.volume !== "maximum",
      // without density walls alone are seen
      density: look.volume === "walls" ? 0 : look.density * 2,
      steps: 256, solid: look.solid, upward: look.up,
    };
    box.draw(look, values, "over", () => gl.drawArrays(gl.TRIANGLES, 0, 36));
    gl.disable(gl.CULL_FACE);
    gl.enable(gl.DEPTH_TEST);
  };
  return { set, draw };
}
