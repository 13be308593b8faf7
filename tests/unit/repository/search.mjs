/** Asks the search of the built site, with the worker that runs in browsers: node search.mjs SITE, queries as JSON on stdin. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runInThisContext } from "node:vm";

const site = process.argv[2];
const workers = join(site, "assets/javascripts/workers");
const [worker] = readdirSync(workers).filter((name) => name.endsWith(".min.js"));
const { config, docs } = JSON.parse(readFileSync(join(site, "search/search_index.json"), "utf8"));
const [SETUP, QUERY] = [0, 2];

let listener;
let answered;
Object.assign(globalThis, {
  self: globalThis,
  addEventListener: (_, found) => (listener = found),
  postMessage: (message) => answered(message),
});
runInThisContext(readFileSync(join(workers, worker), "utf8"));
const ask = (type, data) => new Promise((resolve) => ((answered = resolve), listener({ data: { type, data } })));

await ask(SETUP, { config, docs, options: { suggest: true } });
const pages = [];
for (const query of JSON.parse(readFileSync(0, "utf8"))) {
  const { data } = await ask(QUERY, query);
  pages.push(data.items.map((items) => items[0].location.split("#")[0]));
}
console.log(JSON.stringify(pages));
