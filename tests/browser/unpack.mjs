// Unpacks the Chromium of the npm package into the folder where npm has put that: `TMPDIR=FOLDER node unpack.mjs FOLDER`.
//
// FOLDER/chromium-here starts it, with libraries that come with it: a small image of Linux has none of them.

import { writeFileSync } from "node:fs";

const [folder] = process.argv.slice(2);
const packed = `${folder}/node_modules/@sparticuz/chromium`;
const { default: chromium, inflate } = await import(`${packed}/build/index.js`);
const program = await chromium.executablePath();
await inflate(`${packed}/bin/al2023.tar.br`);
const script = `#!/bin/sh\nLD_LIBRARY_PATH="${folder}/al2023/lib" exec "${program}" "$@"\n`;
writeFileSync(`${folder}/chromium-here`, script, { mode: 0o755 });
