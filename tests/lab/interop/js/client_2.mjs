// @modelcontextprotocol/client 2: `node client_2.mjs MODE`, where MODE is default, auto or the version to pin.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { run } from "./checks.mjs";

const mode = process.argv[2];
const negotiation = { default: undefined, auto: { mode: "auto" } };
const versionNegotiation = mode in negotiation ? negotiation[mode] : { mode: { pin: mode } };

await run(async (server) => {
  const client = new Client({ name: "interop", version: "1" }, { versionNegotiation });
  await client.connect(new StdioClientTransport(server));
  return {
    list: () => client.listTools(),
    call: (name, query, options) => client.callTool({ name, arguments: { query } }, options),
    // The modern revision has no ping.
    ping: () => (mode === "default" ? client.ping() : undefined),
    close: () => client.close(),
  };
});
