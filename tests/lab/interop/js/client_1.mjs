// @modelcontextprotocol/sdk 1, which knows the legacy revision only.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { run } from "./checks.mjs";

await run(async (server) => {
  const client = new Client({ name: "interop", version: "1" });
  await client.connect(new StdioClientTransport(server));
  return {
    list: () => client.listTools(),
    call: (name, query, options) => client.callTool({ name, arguments: { query } }, undefined, options),
    ping: () => client.ping(),
    close: () => client.close(),
  };
});
