// People for the tests: invited and accepted over the API, signed in by their session cookie.

import { call, token, totp } from "./browser.mjs";

const PASSWORD = "correct horse battery staple";

/** Invites a person. @returns the invitation with its link */
export async function invite(email, role, merchant) {
  const operator = await token(process.env.OPERATOR_CLIENT_ID, process.env.OPERATOR_CLIENT_SECRET);
  const body = { email, name: email.split("@")[0], role, merchant };
  return (await call(`${process.env.AUTH_URL}/v1/people`, { token: operator, body })).invitation;
}

/** Creates a person with a password. @returns {Promise<{ email: string, password: string, session: string, secret: string }>} */
export async function person(email, role, merchant) {
  const { token: invitation } = await invite(email, role, merchant);
  const auth = `${process.env.AUTH_URL}/v1/invitations`;
  const { totp: app } = await call(`${auth}/show`, { body: { token: invitation } });
  const body = { token: invitation, password: PASSWORD, totp_code: totp(app.secret), totp_setup: app.setup };
  const { session } = await call(`${auth}/accept`, { body });
  return { email, password: PASSWORD, session, secret: app.secret };
}

/** Signs a window in. The browser's interface takes cookies with this prefix for https only. */
export async function signIn(context, session) {
  const url = process.env.CONSOLE_URL.replace("http:", "https:");
  await context.addCookies([{ name: "__Host-session", value: session, url, secure: true, httpOnly: true, sameSite: "Lax" }]);
}
