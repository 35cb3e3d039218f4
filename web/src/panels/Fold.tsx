/** A button of the header that opens a small sheet below it; Escape or a click elsewhere closes it. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface FoldProps {
  title: ComponentChildren;
  children: ComponentChildren;
}

export function Fold({ title, children }: FoldProps) {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const closeElsewhere = (event: Event) => {
      const fold = details.current;
      if (fold?.open && !event.composedPath().includes(fold)) fold.open = false;
    };
    document.addEventListener("pointerdown", closeElsewhere);
    return () => document.removeEventListener("pointerdown", closeElsewhere);
  }, []);
  return (
    <details
      class="fold"
      ref={details}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !details.current?.open) return;
        details.current.open = false;
        details.current.querySelector("summary")?.focus();
      }}
    >
      <summary>{title}</summary>
      <div class="sheet">{children}</div>
    </details>
  );
}
