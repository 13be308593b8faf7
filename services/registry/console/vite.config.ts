/** Build of the console into the Python package of the registry, which serves it. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "/console/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../tamis_registry/console",
    emptyOutDir: true,
    target: "es2022",
    // The policy of the page allows only files: no data addresses, and no polyfill that a script adds.
    assetsInlineLimit: 0,
    modulePreload: false,
    chunkSizeWarningLimit: 600,
  },
  // `npm run dev` shows the page while one works on it, with the API of a registry on this machine.
  server: { host: "127.0.0.1", proxy: { "/v1": "http://127.0.0.1:8181" } },
  test: { include: ["tests/**/*.test.ts"] },
});
