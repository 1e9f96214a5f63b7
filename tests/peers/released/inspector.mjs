// The Inspector's command line, started for each operation, with the report of `client.py`:
// `node inspector.mjs NODE CLI OPTION… -- PLAN TARGET…`.

import { execFile } from "node:child_process";

const split = process.argv.indexOf("--");
const [node, cli, ...options] = process.argv.slice(2, split);
const [said, ...target] = process.argv.slice(split + 1);
const plan = JSON.parse(said);
const LIMIT_MS = 60000;

const run = (...method) =>
  new Promise((resolve) => {
    const command = [cli, ...options, ...target, "--method", ...method];
    execFile(node, command, { timeout: LIMIT_MS, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      try {
        resolve({ result: JSON.parse(stdout.slice(stdout.indexOf("{"))) });
      } catch {
        resolve({ raised: `${error?.message ?? ""} ${stderr || stdout}`.slice(-1000) });
      }
    });
  });
const pairs = (of) => Object.entries(of).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);

const report = { "list tools": await run("tools/list") };
report.open = "result" in report["list tools"] ? { result: {} } : report["list tools"];
report["list prompts"] = await run("prompts/list");
report["list resources"] = await run("resources/list");
report["list resource templates"] = await run("resources/templates/list");
for (const [name, args] of Object.entries(plan.calls))
  report[`call ${name}`] = await run("tools/call", "--tool-name", name, ...(Object.keys(args).length ? ["--tool-arg", ...pairs(args)] : []));
for (const [name, args] of Object.entries(plan.prompts))
  report[`get ${name}`] = await run("prompts/get", "--prompt-name", name, "--prompt-args", ...pairs(args));
for (const uri of plan.reads) report[`read ${uri}`] = await run("resources/read", "--uri", uri);
console.log(JSON.stringify(report));
