// What every client is asked to do. The server's command comes in the environment as INTEROP_SERVER. One line of JSON
// per check goes to stdout; a line {"await": EVENT, "query": QUERY} asks for a line on stdin once the fake API has seen
// that. What was found is judged by the reader of the lines: here only the client's own exceptions are failures.
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

async function seen(event, query) {
  say({ await: event, query });
  const { value } = await lines.next();
  if (value !== "seen") throw new Error(`the fake API has not seen the ${event} of ${query}: ${value}`);
}

async function failure(promise) {
  try {
    return { result: await promise };
  } catch (error) {
    return { error: `${error.name}: ${error.message}`, data: error.data ?? null };
  }
}

function answer(result) {
  return { structured: result.structuredContent, text: result.content[0].text, isError: result.isError ?? false };
}

export async function run(open) {
  const client = await open(JSON.parse(process.env.INTEROP_SERVER));

  async function stillServes() {
    await client.ping();
    await client.call("answer", "Still there?");
  }

  const checks = {
    async connect() {
      await stillServes();
      return {};
    },
    async list() {
      return { tools: (await client.list()).tools };
    },
    async call() {
      const answers = {};
      for (const name of ["answer", "answer_detailed", "answer_quick"]) {
        answers[name] = answer(await client.call(name, `${name}: 東京の天気は？`));
      }
      return { answers };
    },
    async progress() {
      const heard = [];
      const result = await client.call("answer", "Tell me slowly.", { onprogress: (each) => heard.push(each) });
      return { heard, answer: answer(result) };
    },
    async cancel() {
      const query = `Cancelled, so never answered: ${randomUUID()}`;
      const controller = new AbortController();
      const call = failure(client.call("answer", query, { signal: controller.signal }));
      await seen("request", query);
      controller.abort("no longer wanted");
      const outcome = await call;
      await seen("hang_up", query);
      await stillServes();
      return outcome;
    },
    async "time limit"() {
      const query = `Over the limit, so never answered: ${randomUUID()}`;
      const outcome = await failure(client.call("answer", query, { timeout: 2000 }));
      await seen("hang_up", query);
      await stillServes();
      return outcome;
    },
    async "tool error"() {
      const outcome = await failure(client.call("answer", "").then(answer));
      await stillServes();
      return outcome;
    },
    async "five at once"() {
      const queries = [0, 1, 2, 3, 4].map((number) => `question ${number}.`);
      const results = await Promise.all(queries.map((query) => client.call("answer", query)));
      return { answers: Object.fromEntries(queries.map((query, place) => [query, answer(results[place])])) };
    },
    async close() {
      await client.close();
      return {};
    },
  };

  for (const [check, does] of Object.entries(checks)) {
    try {
      say({ check, ...(await does()) });
    } catch (error) {
      say({ check, failed: error.stack });
    }
  }
  process.stdin.destroy();
}
