// Reads an inbox with the npm package eventsource, which reconnects and resumes by itself.
const [hub, key, module] = process.argv.slice(2);
const { EventSource } = await import(module);

const source = new EventSource(`${hub}/agent/inbox`, {
  fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${key}` } }),
});
source.addEventListener('connected', () => console.log('connected'));
source.addEventListener('message', (event) => {
  const text = JSON.parse(event.data).envelope.original_text;
  console.log(`message ${text.split(' ')[0]}`);
});
