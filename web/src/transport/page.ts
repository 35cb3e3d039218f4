import { httpTransport } from "./http";
import { staticTransport, type KeptPage } from "./static";
import type { Transport } from "./transport";

/** Id of the JSON script element in which an exported file keeps its answers. */
export const KEPT_ID = "marginfold-answers";

/** The transport of a page: its own kept answers where it has some, else the server with the token of `#token=...`. */
export function pageTransport(): Transport {
  const kept = document.getElementById(KEPT_ID);
  if (kept) return staticTransport(JSON.parse(kept.textContent ?? "") as KeptPage);
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  return httpTransport(token ?? "");
}
