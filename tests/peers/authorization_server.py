"""An authorization server of authlib, and a server that takes its tokens: `python authorization_server.py FOLDER`.

With `jwt` or `opaque` after an URL, its tokens are such, for the server that a client names (or for the client, as
authlib does it). Says and takes the same lines as `npm/authorization.mjs`. Runs under `requirements/authlib.txt`;
imports nothing of Dragoman.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2 import rfc6749, rfc7009, rfc7591, rfc7636, rfc7662, rfc9068, rfc9207
from flask import Flask, jsonify, request
from joserfc import jwk
from werkzeug.serving import WSGIRequestHandler, make_server

FORMAT = sys.argv[3] if len(sys.argv) > 3 else "opaque"
SECRET = "a secret of forty characters, or of more"


@dataclass
class Client(rfc6749.ClientMixin):
    client_id: str
    secret: str
    about: dict[str, Any]

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return str(self.about["redirect_uris"][0])

    def get_allowed_scope(self, scope: str) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.about["redirect_uris"]

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return bool(method == self.about["token_endpoint_auth_method"])

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.about["grant_types"]


@dataclass
class Code(rfc6749.AuthorizationCodeMixin):
    code: str
    client_id: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass
class Token(rfc6749.TokenMixin):
    client: Client
    access_token: str
    scope: str
    refresh_token: str = ""
    audience: str = ""
    over: set[str] = field(default_factory=set)

    def check_client(self, client: Client) -> bool:
        return client.client_id == self.client.client_id

    def get_scope(self) -> str:
        return self.scope

    def get_expires_in(self) -> int:
        return 3600

    def is_expired(self) -> bool:
        return False

    def is_revoked(self) -> bool:
        return "refresh_token" in self.over

    def get_user(self) -> str:
        return "ann"

    def get_client(self) -> Client:
        return self.client


class Person(str):
    def get_user_id(self) -> str:
        return self


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


robot = {
    "grant_types": ["client_credentials"],
    "redirect_uris": [],
    "token_endpoint_auth_method": "client_secret_basic",
}
clients = {"robot": Client("robot", SECRET, robot)}
codes: dict[str, Code] = {}
tokens: list[Token] = []


def save_token(said: dict[str, Any], asked: Any) -> None:
    say(did=asked.payload.grant_type, resource=request.form.get("resource"))
    token = Token(asked.client, said["access_token"], said.get("scope", ""), said.get("refresh_token", ""))
    token.audience = request.form.get("resource", asked.client.client_id)
    tokens.append(token)


class CodeGrant(rfc6749.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic")

    def save_authorization_code(self, code: str, asked: Any) -> None:
        said = asked.payload.data
        challenge = said["code_challenge"], said["code_challenge_method"]
        codes[code] = Code(
            code, asked.client.client_id, asked.payload.redirect_uri, asked.payload.scope or "", *challenge
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found = codes.get(code)
        return found if found is not None and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> Person:
        return Person("ann")


class RefreshGrant(rfc6749.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic")
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        return next((one for one in tokens if one.refresh_token == refresh_token and not one.is_revoked()), None)

    def authenticate_user(self, refresh_token: Token) -> Person:
        return Person("ann")

    def revoke_old_credential(self, refresh_token: Token) -> None:
        refresh_token.over |= {"access_token", "refresh_token"}
        say(did="rotate")


class Registration(rfc7591.ClientRegistrationEndpoint):
    def authenticate_token(self, asked: Any) -> bool:
        return True

    def get_server_metadata(self) -> dict[str, Any]:
        return about

    def save_client(self, client_info: dict[str, Any], client_metadata: dict[str, Any], asked: Any) -> Client:
        client = Client(client_info["client_id"], client_info["client_secret"], client_metadata)
        clients[client.client_id] = client
        say(did="register", client=client.client_id)
        return client


class Revocation(rfc7009.RevocationEndpoint):
    CLIENT_AUTH_METHODS = ("none", "client_secret_basic")

    def query_token(self, token_string: str, token_type_hint: str) -> Token | None:
        return next((one for one in tokens if token_string in (one.access_token, one.refresh_token)), None)

    def revoke_token(self, token: Token, asked: Any) -> None:
        kind = "refresh_token" if asked.form["token"] == token.refresh_token else "access_token"
        token.over.add(kind)
        say(did=f"end {kind}")


class Introspection(rfc7662.IntrospectionEndpoint):
    CLIENT_AUTH_METHODS = ("client_secret_basic",)

    def query_token(self, token_string: str, token_type_hint: str) -> Token | None:
        found = next((one for one in tokens if one.access_token == token_string), None)
        return found if found is not None and "access_token" not in found.over else None

    def check_permission(self, token: Token, client: Client, asked: Any) -> bool:
        return True

    def introspect_token(self, token: Token) -> dict[str, Any]:
        about = {"client_id": token.client.client_id, "scope": token.scope, "aud": token.audience, "iss": origin}
        return {**about, "active": True, "token_type": "Bearer", "exp": int(time.time()) + 3600, "sub": "ann"}


def make_refresh_token(*_: Any, **__: Any) -> str:
    return secrets.token_hex()


class SignedTokens(rfc9068.JWTBearerTokenGenerator):
    def get_jwks(self) -> Any:
        return keys

    def get_audiences(self, client: Client, user: Any, scope: str) -> str:
        return str(request.form.get("resource", client.client_id))


class Issuer(rfc9207.IssuerParameter):
    def get_issuer(self) -> str:
        return origin


class Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


app = Flask("authorization")
app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
server = AuthorizationServer(app, query_client=clients.get, save_token=save_token)
server.register_grant(CodeGrant, [rfc7636.CodeChallenge(required=True)])
server.register_grant(RefreshGrant)
server.register_grant(rfc6749.ClientCredentialsGrant)
server.register_endpoint(Registration)
server.register_endpoint(Revocation)
server.register_extension(Issuer())
server.register_endpoint(Introspection)
listening = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
origin = f"http://127.0.0.1:{listening.server_port}"
resource = f"{origin}/mcp"
keys = jwk.KeySet([])


def change_key() -> None:
    kid = f"key-{secrets.token_hex(4)}"
    keys.keys[:] = [jwk.RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})]


change_key()
if FORMAT == "jwt":
    server.register_token_generator("default", SignedTokens(origin, refresh_token_generator=make_refresh_token))
about = {
    "issuer": origin,
    **{f"{name}_endpoint": f"{origin}/{name}" for name in ("authorization", "token", "registration", "revocation")},
    "jwks_uri": f"{origin}/keys",
    "response_types_supported": ["code"],
    "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
    "code_challenge_methods_supported": ["S256"],
    "authorization_response_iss_parameter_supported": True,
}


@app.get("/.well-known/oauth-authorization-server")
def describe_issuer() -> Any:
    return jsonify(about)


@app.get("/.well-known/oauth-protected-resource/mcp")
def describe_resource() -> Any:
    return jsonify(resource=resource, authorization_servers=[origin], scopes_supported=["tools"])


@app.get("/keys")
def show_keys() -> Any:
    return jsonify(keys.as_dict(private=False))


@app.post("/introspection")
def introspect() -> Any:
    return server.create_endpoint_response("introspection")


@app.get("/authorization")
def authorize() -> Any:
    return server.create_authorization_response(grant_user="ann")


@app.post("/token")
def issue_token() -> Any:
    return server.create_token_response()


@app.post("/registration")
def register() -> Any:
    return server.create_endpoint_response("client_registration")


@app.post("/revocation")
def revoke() -> Any:
    return server.create_endpoint_response("revocation")


@app.post("/mcp")
def serve() -> Any:
    frame = request.get_json()
    wanted = "tools write" if frame.get("params", {}).get("name") == "write" else "tools"
    sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
    found = next((one for one in tokens if one.access_token == sent and "access_token" not in one.over), None)
    is_enough = found is not None and set(wanted.split()) <= set(found.scope.split())
    if not is_enough:
        error = 'error="insufficient_scope", ' if found else ""
        where = f'resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"'
        says = f'Bearer {error}scope="{wanted}", {where}'
        return "", 403 if found else 401, {"WWW-Authenticate": says}
    assert found is not None
    if "id" not in frame:
        return "", 202
    if frame["method"] == "initialize":
        result: Any = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"},
        }
    else:
        text = f"{frame['params']['name']} by {found.client.client_id}"
        result = {"content": [{"type": "text", "text": text}]}
    return jsonify(jsonrpc="2.0", id=frame["id"], result=result)


def main() -> None:
    Path(sys.argv[1], "secret").write_text(SECRET)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    print(json.dumps({"issuer": origin, "url": resource}), flush=True)
    for line in sys.stdin:
        ended = {"end": {"access_token"}, "expire": {"access_token", "refresh_token"}}
        for token in tokens:
            token.over |= ended.get(line.strip(), set())
        if line.strip() == "forget":
            clients.clear()
        if line.strip() == "rotate":
            change_key()
        say(did=line.strip())


if __name__ == "__main__":
    main()
