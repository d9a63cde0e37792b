#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds everything for the browser: the core (build/web/core/{simd,plain}), the npm package (web/api/dist) and the static page
# (build/web/site), which any web server can serve. WEB_KINDS=simd leaves out the core for engines without vectors.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
read -ra kinds <<<"${WEB_KINDS:-simd plain}"

tools/fetch-sources.sh
for kind in "${kinds[@]}"; do
  preset=web
  [ $kind = plain ] && preset=web-plain
  [ -f build/web/$kind/build.ninja ] || cmake --preset $preset
  cmake --build build/web/$kind -j "$jobs" --target weighbridge_core
  mkdir -p build/web/core/$kind
  cp build/web/$kind/web/core/weighbridge.{js,wasm} build/web/core/$kind/
done

cd web
# Also when the versions in the lock have changed since.
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent
rm -rf api/dist ../build/web/site
npx --no-install tsc -p api/tsconfig.json
node api/tools/copy_core.mjs ../build/web/core "${kinds[@]}"
npx --no-install tsc -p page/tsconfig.json
cp page/index.html page/style.css page/favicon.svg ../build/web/site/
mkdir -p ../build/web/site/api/dist
cp -r api/dist/. ../build/web/site/api/dist/
echo "The page is in build/web/site: make web-serve shows it"
