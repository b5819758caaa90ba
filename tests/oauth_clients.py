"""Requests tokens from auth with common OAuth libraries and their default settings.

Reads AUTH_URL, CLIENT_ID and CLIENT_SECRET from the environment. Prints one line per check and
"N passed, M failed" at the end; exits non-zero if a check failed.
"""

import base64
import os
import sys
import time
import traceback

# Makes requests-oauthlib accept plain HTTP, which is safe on loopback.
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"
os.environ["NO_PROXY"] = "127.0.0.1,localhost"

import jwt
import requests
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from oauthlib.oauth2 import BackendApplicationClient
from requests_oauthlib import OAuth2Session as RequestsSession

AUTH_URL = os.environ["AUTH_URL"].rstrip("/")
CLIENT_ID = os.environ["CLIENT_ID"]
CLIENT_SECRET = os.environ["CLIENT_SECRET"]
TOKEN_URL = f"{AUTH_URL}/oauth/token"
JWKS_URL = f"{AUTH_URL}/.well-known/jwks.json"
LIFETIME = 90_000


def authlib_token(method):
    session = AuthlibSession(CLIENT_ID, CLIENT_SECRET, token_endpoint_auth_method=method)
    return session.fetch_token(TOKEN_URL, grant_type="client_credentials", timeout=10)


def requests_oauthlib_token(**credentials):
    session = RequestsSession(client=BackendApplicationClient(client_id=CLIENT_ID))
    return session.fetch_token(TOKEN_URL, timeout=10, **credentials)


def authlib_with_basic():
    verify(authlib_token("client_secret_basic"))


def authlib_with_post():
    verify(authlib_token("client_secret_post"))


def requests_oauthlib_with_basic():
    auth = requests.auth.HTTPBasicAuth(CLIENT_ID, CLIENT_SECRET)
    verify(requests_oauthlib_token(auth=auth))


def requests_oauthlib_with_post():
    verify(requests_oauthlib_token(client_secret=CLIENT_SECRET, include_client_id=True))


def plain_json():
    body = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    response = requests.post(TOKEN_URL, json=body, timeout=10)
    equal(response.status_code, 200)
    equal(response.headers["Cache-Control"], "no-store")
    equal(sorted(response.json()), ["access_token", "created_at", "expires_in", "scope", "token_type"])
    verify(response.json())


def wrong_secret_is_an_oauth_error():
    response = requests.post(TOKEN_URL, auth=(CLIENT_ID, "wrong"), data={"grant_type": "client_credentials"}, timeout=10)
    equal(response.status_code, 401)
    equal(response.json()["error"], "invalid_client")
    equal(response.headers["WWW-Authenticate"].split()[0], "Basic")


def metadata_has_the_same_urls():
    metadata = requests.get(f"{AUTH_URL}/.well-known/oauth-authorization-server", timeout=10).json()
    equal(metadata["issuer"], AUTH_URL)
    equal(metadata["token_endpoint"], TOKEN_URL)
    equal(metadata["jwks_uri"], JWKS_URL)


def a_changed_token_is_rejected():
    valid = authlib_token("client_secret_post")["access_token"]
    head, payload, signature = valid.split(".")
    raw = bytearray(base64.urlsafe_b64decode(signature + "=="))
    raw[0] ^= 1
    forged = f"{head}.{payload}.{base64.urlsafe_b64encode(raw).rstrip(b'=').decode()}"
    for token, status in [(valid, 200), (forged, 401)]:
        headers = {"Authorization": f"Bearer {token}"}
        equal(requests.get(f"{AUTH_URL}/v1/merchants", headers=headers, timeout=10).status_code, status)


def decode(access_token):
    key = jwt.PyJWKClient(JWKS_URL).get_signing_key_from_jwt(access_token)
    return jwt.decode(access_token, key, algorithms=["EdDSA", "ES256"], audience="backhaul", issuer=AUTH_URL)


def verify(token):
    """Checks the token response and the claims of the token (RFC 9068)."""
    equal(token["token_type"], "Bearer")
    equal(token["expires_in"], LIFETIME)
    equal(abs(token["created_at"] - time.time()) < 60, True)
    equal(jwt.get_unverified_header(token["access_token"])["typ"], "at+jwt")
    claims = decode(token["access_token"])
    missing = {"iss", "exp", "aud", "sub", "client_id", "iat", "jti", "scope"} - claims.keys()
    equal(missing, set())
    equal(claims["client_id"], CLIENT_ID)
    equal(claims["exp"] - claims["iat"], LIFETIME)
    scope = token["scope"] if isinstance(token["scope"], str) else " ".join(token["scope"])
    equal(claims["scope"], scope)


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


CHECKS = [
    authlib_with_basic,
    authlib_with_post,
    requests_oauthlib_with_basic,
    requests_oauthlib_with_post,
    plain_json,
    wrong_secret_is_an_oauth_error,
    metadata_has_the_same_urls,
    a_changed_token_is_rejected,
]


def main():
    failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            check()
            print(f"ok      {name}")
        except Exception:
            failed += 1
            print(f"FAILED  {name}")
            traceback.print_exc()
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
