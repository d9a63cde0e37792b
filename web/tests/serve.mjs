// SPDX-License-Identifier: Apache-2.0
// A server for the built page, on the loopback address only: static files of one folder, with the headers that the page
// should have. `node serve.mjs FOLDER [PORT]` serves until it is stopped; tests import `serve`.

import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";

const TYPES = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

export const POLICY = [
  "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "style-src 'self'", "img-src 'self' blob: data:",
  "connect-src 'self'", "worker-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
].join("; ");

const HEADERS = {
  "Content-Security-Policy": POLICY,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-cache",
};

/** The requested file, or null unless it is a plain file inside the folder after following links. */
async function fileOf(folder, url) {
  let path;
  try {
    path = decodeURIComponent(url.split(/[?#]/)[0]);
  } catch {
    return null;
  }
  if (path.includes("\0") || path.includes("\\") || path.split("/").includes("..")) return null;
  try {
    const real = await realpath(join(folder, path.endsWith("/") ? `${path}index.html` : path));
    const found = await stat(real);
    return real.startsWith(folder + sep) && found.isFile() ? { path: real, size: found.size } : null;
  } catch {
    return null;
  }
}

async function answer(folder, request, response) {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { ...HEADERS, Allow: "GET, HEAD" }).end();
    return;
  }
  const file = await fileOf(folder, request.url);
  if (!file) {
    response.writeHead(404, { ...HEADERS, "Content-Type": "text/plain; charset=utf-8" }).end("not found\n");
    return;
  }
  response.writeHead(200, { ...HEADERS, "Content-Type": TYPES[extname(file.path)] ?? "application/octet-stream",
    "Content-Length": file.size });
  if (request.method === "HEAD") response.end();
  else createReadStream(file.path).on("error", () => response.destroy()).pipe(response);
}

/** Serves FOLDER on 127.0.0.1; port 0 chooses a free one. Resolves to { url, close }. */
export async function serve(folder, port = 0) {
  const root = await realpath(resolve(folder));
  const server = createServer((request, response) => void answer(root, request, response));
  await new Promise((done, fail) => {
    server.once("error", fail);
    server.listen(port, "127.0.0.1", done);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () => new Promise((done) => {
      server.close(done);
      server.closeAllConnections();
    }),
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [folder, port = "8000"] = process.argv.slice(2);
  if (!folder || !/^\d{1,5}$/.test(port)) {
    console.error("usage: node serve.mjs FOLDER [PORT]");
    process.exit(2);
  }
  try {
    const { url } = await serve(folder, Number(port));
    console.log(`${url} serves ${folder}; Ctrl-C ends it`);
  } catch (error) {
    console.error(error.code === "EADDRINUSE" ? `port ${port} is taken: name another one` : error.message);
    process.exit(1);
  }
}
