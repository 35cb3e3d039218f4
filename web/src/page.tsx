import "./style.css";
import { mount } from "./app";
import { pageTransport } from "./transport/page";

mount(document.getElementById("app")!, pageTransport());
