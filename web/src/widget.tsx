import "./style.css";
import { mount } from "./app";
import { widgetTransport, type WidgetModel } from "./transport/widget";

/** What anywidget calls for each view of the widget. */
function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const transport = widgetTransport(model);
  const unmount = mount(el, transport);
  return () => {
    unmount();
    transport.close();
  };
}

export default { render };
