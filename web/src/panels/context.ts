/** The explorer that a panel belongs to. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Explorer } from "../state/explorer";

export const ExplorerContext = createContext<Explorer | null>(null);

/** The explorer of this panel. */
export function useExplorer(): Explorer {
  const explorer = useContext(ExplorerContext);
  if (!explorer) throw new Error("a panel stands outside of an explorer");
  return explorer;
}
