import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

const STATIC = "../src/marginfold/explorer/static";

/** What each mode builds; `bench` and `map` are pages of benchmarks/explorer and of the browser tests. */
const INPUTS: Record<string, string> = {
  page: "src/page.tsx",
  widget: "src/widget.tsx",
  bench: "../benchmarks/explorer/render.ts",
  map: "harness/map.tsx",
};

/**
 * Two self-contained ES modules, built by mode: `page` (page.js, page.css, page.html) for the server and the
 * exported file, `widget` (widget.js, beside page.css) for anywidget. No hash and no date: the same sources give the same bytes.
 */
export default defineConfig(({ mode }) => ({
  build: {
    outDir: STATIC,
    emptyOutDir: false,
    target: "es2022",
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
    modulePreload: false,
    copyPublicDir: false,
    rollupOptions: {
      input: { [mode]: INPUTS[mode] },
      preserveEntrySignatures: "strict",
      output: { format: "es", entryFileNames: "[name].js", assetFileNames: "[name][extname]", codeSplitting: false },
    },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: mode === "page" ? [copyPage()] : mode === "widget" ? [dropStyle()] : [],
  test: { include: ["src/**/*.test.{ts,tsx}"] },
}));

/** The widget wears the sheet of the page. */
function dropStyle() {
  return {
    name: "drop-style",
    generateBundle(_: unknown, bundle: Record<string, unknown>) {
      for (const name of Object.keys(bundle).filter((each) => each.endsWith(".css"))) delete bundle[name];
    },
  };
}

/** web/index.html becomes page.html as it is. */
function copyPage() {
  return {
    name: "copy-page",
    generateBundle(this: { emitFile(file: { type: "asset"; fileName: string; source: string }): void }) {
      this.emitFile({ type: "asset", fileName: "page.html", source: readFileSync("index.html", "utf8") });
    },
  };
}
