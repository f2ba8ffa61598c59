// The page within a notebook: a frame of its own, whose WebSocket is the kernel's comm.
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.srcdoc = model.get("page");
  frame.title = "lanewise";
  frame.allow = "fullscreen";
  frame.style.cssText = `width:100%;height:${model.get("height")}px;border:0`;
  const heard = ({ source, data }) => {
    if (source === frame.contentWindow && typeof data?.lanewise === "string") {
      model.send({ text: data.lanewise });
    }
  };
  const said = (message, buffers) => {
    const data = message.text ?? buffers[0];
    frame.contentWindow?.postMessage({ lanewise: data }, "*");
  };
  addEventListener("message", heard);
  model.on("msg:custom", said);
  el.append(frame);
  return () => {
    removeEventListener("message", heard);
    model.off("msg:custom", said);
  };
}
export default { render };
