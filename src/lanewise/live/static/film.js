// Pictures and films, saved where the page is looked at.
import { element } from "./panel.js";

const TYPES = ["video/mp4;codecs=avc1", "video/mp4", "video/webm;codecs=vp9", "video/webm"];

export function save(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// A canvas with what was drawn and what is written over it.
export function composed(pixels, width, height, write) {
  const canvas = element("canvas", { width, height });
  const context = canvas.getContext("2d");
  context.putImageData(new ImageData(pixels, width, height), 0, 0);
  write(context);
  return canvas;
}

export class Film {
  constructor(layers) {
    this.layers = layers;
    const [{ width, height }] = layers;
    // encoders want even sizes
    this.canvas = element("canvas", { width: width & ~1, height: height & ~1 });
    this.context = this.canvas.getContext("2d");
    const mimeType = TYPES.find((type) => MediaRecorder.isTypeSupported(type));
    const stream = this.canvas.captureStream(30);
    this.recorder = new MediaRecorder(stream, { mimeType, videoBitsPerSecond: 12e6 });
    this.parts = [];
    this.recorder.ondataavailable = ({ data }) => this.parts.push(data);
    this.recorder.start(1000);
  }

  // In the task that has drawn: afterwards the picture is gone.
  add() {
    for (const layer of this.layers)
      this.context.drawImage(layer, 0, 0, this.canvas.width, this.canvas.height);
  }

  stop() {
    return new Promise((done) => {
      this.recorder.onstop = () => {
        const type = this.recorder.mimeType.split(";")[0];
        done(new Blob(this.parts, { type }));
      };
      this.recorder.stop();
    });
  }
}
