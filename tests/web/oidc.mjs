// Sign-in with an identity provider: a real one, node's oidc-provider, on a port of its own.
// usage: oidc.mjs serve PORT CONSOLE_URL | oidc.mjs test
//
// `serve` runs the provider, whose users are their e-mail addresses. The group of a user is the part of the
// address before the @.

import assert from "node:assert/strict";
import { launch, open, require, run } from "./browser.mjs";

async function serve(port, consoleUrl) {
  const { default: Provider } = await import(require.resolve("oidc-provider"));
  const provider = new Provider(`http://localhost:${port}`, {
    clients: [
      {
        client_id: "backhaul",
        client_secret: "a-secret-of-thirty-two-characters",
        redirect_uris: [`${consoleUrl}/sign-in/oidc`],
        grant_types: ["authorization_code"],
        response_types: ["code"],
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
    scopes: ["openid", "email", "profile", "groups"],
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    cookies: { keys: ["only for this test"] },
    features: { devInteractions: { enabled: true } },
    async findAccount(_context, id) {
      const claims = { sub: id, email: id, email_verified: !id.startsWith("unverified"), name: id, groups: [id.split("@")[0]] };
      return { accountId: id, claims: async () => claims };
    },
  });
  provider.listen(port, "127.0.0.1", () => console.log("listening"));
}

async function signIn(email) {
  const browser = await launch();
  try {
    const { page } = await open(browser);
    await page.goto("/deliveries?state=dead");
    await page.getByRole("button", { name: /Continue with/ }).click();
    await page.locator("input[name=login]").fill(email);
    await page.locator("input[name=password]").fill("any");
    await page.getByRole("button", { name: /sign-?in/i }).click();
    await page.getByRole("button", { name: /continue/i }).click();
    await page.waitForURL(`${process.env.CONSOLE_URL}/**`);
    return { url: page.url(), text: await page.locator("body").innerText() };
  } finally {
    await browser.close();
  }
}

const [mode, port, consoleUrl] = process.argv.slice(2);
if (mode === "serve") {
  await serve(Number(port), consoleUrl);
} else {
  process.argv.splice(2, 1);
  await run({
    "a group gives a role, and signing in leads to the page that was asked for": async () => {
      const { url, text } = await signIn("operators@example.com");
      assert.match(url, /\/deliveries\?state=dead$/);
      assert.match(text, /operators@example\.com/);
    },
    "a person of a merchant's group sees that merchant": async () => {
      const { text } = await signIn("acme-admins@example.com");
      assert.match(text, /acme-admins@example\.com/);
      assert.doesNotMatch(text, /Merchants\n/);
    },
    "a person without a group with a role is refused": async () => {
      const { text } = await signIn("strangers@example.com");
      assert.match(text, /group|role/i);
      assert.doesNotMatch(text, /Sign out/);
    },
    "an address that is not verified is refused": async () => {
      const { text } = await signIn("unverified@example.com");
      assert.doesNotMatch(text, /Sign out/);
    },
  });
}
