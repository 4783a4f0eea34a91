// The three answer tools on the official TypeScript SDK and OpenAI's client for Node: `node server.mjs SETTINGS`.
//
// SETTINGS is the file that tests.lab.bench.peers has written. The SDK aborts the signal of a call that its client has
// cancelled, and OpenAI's client ends the request. The base URL and the key come from OPENAI_BASE_URL and
// OPENAI_API_KEY.

import { readFileSync } from "node:fs";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import OpenAI from "openai";

const settings = JSON.parse(readFileSync(process.argv[2], "utf8"));
const openai = new OpenAI({ timeout: 300_000 });
const tokyo = new Intl.DateTimeFormat("sv-SE", { timeZone: "Asia/Tokyo", dateStyle: "short" }); // YYYY-MM-DD

function inputText(query, given, today) {
  const hints = [
    `today=${today} (Asia/Tokyo)`,
    `recency_days=${given.recency_days ?? settings.recency_days}`,
    `max_results=${given.max_results ?? settings.max_results}`,
  ];
  if (given.domains?.length) hints.push(`domains=${given.domains.join(" ")}`);
  return `${query}\n\n[Hints] ${hints.join(", ")}`;
}

// Returns an answer with its sources, as the tools' output schema has it.
function readAnswer(response, model, today) {
  let searched = false;
  const cited = new Map();
  for (const item of response.output) {
    if (item.type === "web_search_call") searched = true;
    if (item.type !== "message") continue;
    for (const part of item.content) {
      for (const note of part.annotations ?? []) {
        if (note.type === "url_citation" && !cited.has(note.url)) cited.set(note.url, note.title);
      }
    }
  }
  const chosen = [...cited].slice(0, settings.max_citations);
  let text = response.output_text.trim();
  if (searched) {
    const lines = chosen.length ? chosen.map(([url]) => `- ${url} (${today})`) : [`- web_search (${today})`];
    text = [text, "", "Sources:", ...lines].join("\n");
  }
  const citations = chosen.map(([url, title]) => ({ url, title, published_at: today }));
  return { answer: text, used_search: searched, citations, model };
}

const failure = (text) => ({ content: [{ type: "text", text }], isError: true });

const server = new Server(
  { name: "typescript-sdk", version: "1.0.0" },
  { capabilities: { tools: {} }, instructions: settings.instructions },
);

server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: settings.tools }));

server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
  const given = params.arguments ?? {};
  const profile = settings.profiles[params.name];
  if (!profile) return failure(`there is no tool ${params.name}`);
  if (typeof given.query !== "string" || !given.query.trim()) return failure("query is missing or empty");
  const today = tokyo.format(new Date());
  try {
    const response = await openai.responses.create(
      {
        model: profile.model,
        instructions: settings.policy,
        input: inputText(given.query, given, today),
        tools: [{ type: "web_search" }],
        include: ["web_search_call.action.sources"],
        text: { verbosity: profile.verbosity },
        reasoning: { effort: profile.reasoning_effort },
      },
      { signal },
    );
    const answer = readAnswer(response, profile.model, today);
    return { content: [{ type: "text", text: JSON.stringify(answer) }], structuredContent: answer };
  } catch (error) {
    return failure(error instanceof Error ? error.message : String(error));
  }
});

process.stdin.once("end", () => server.close()); // ends what still runs, and with it the process
await server.connect(new StdioServerTransport());
