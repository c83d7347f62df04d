#!/bin/sh
# Renews the third-party browser code that the report embeds, in assets/vendor/, from npm by the lock file.
set -eu
cd "$(dirname "$0")"
npm ci --no-progress
mkdir -p assets/vendor
cp node_modules/uplot/dist/uPlot.iife.min.js node_modules/uplot/dist/uPlot.min.css assets/vendor/
cp node_modules/uplot/LICENSE assets/vendor/uPlot.LICENSE
rm -rf node_modules
