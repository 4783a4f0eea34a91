// @copilotkit/aimock as a Responses API: says where it listens, and of every exchange whether it was finished.
import http from "node:http";
import { syncBuiltinESMExports } from "node:module";

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

// It tells nobody when its client hangs up, so look over its shoulder.
const { createServer } = http;
http.createServer = (...settings) =>
  createServer(...settings).on("request", (request, response) => {
    response.on("close", () => say({ path: request.url, finished: response.writableFinished }));
  });
syncBuiltinESMExports();

const { LLMock } = await import("@copilotkit/aimock");
const mock = new LLMock({ port: 0, chunkSize: 20 });
mock.onMessage(/release/, {
  content: "Python 3.14 came out on 7 October 2025, says its release schedule.",
  reasoning: "The user asks about a release.",
  webSearches: ["python 3.14 release date", "pep 745"],
});
mock.onMessage(/slowly/, { content: "word ".repeat(1000) }, { latency: 50 });
mock.onMessage(/busy/, { error: { message: "Too many requests.", type: "rate_limit_error" }, status: 429 });
mock.onMessage(/cut/, { content: "An answer that nobody hears to its end." }, { truncateAfterChunks: 5 });
say({ url: `${await mock.start()}/v1` });
process.stdin.on("end", () => process.exit(0)).resume();
