// In the frame: a WebSocket that talks to the notebook around it.
globalThis.WebSocket = class {
  constructor() {
    this.readyState = 0;
    addEventListener("message", ({ source, data }) => {
      if (source !== parent || data?.lanewise === undefined) return;
      const said = data.lanewise;
      const view = ArrayBuffer.isView(said);
      const bytes = view ? said.buffer.slice(said.byteOffset, said.byteOffset + said.byteLength)
        : said;
      this.onmessage?.({ data: bytes });
    });
    setTimeout(() => {
      this.readyState = 1;
      this.onopen?.();
    });
  }
  send(text) {
    parent.postMessage({ lanewise: text }, "*");
  }
  close() {
    this.readyState = 3;
  }
};
