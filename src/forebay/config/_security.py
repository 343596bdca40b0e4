"""The table of options for TLS and SASL.

All of Java's are declared, so that a configuration that asks for what is not here is refused by name, and never run
without it.  What only means something in a JVM is taken at its default.
"""

from __future__ import annotations

from typing import Any

from forebay.config._option import Feature, Importance, Option, Type

BOOLEAN, INT, LONG, DOUBLE, STRING = Type.BOOLEAN, Type.INT, Type.LONG, Type.DOUBLE, Type.STRING
LIST, CLASS, PASSWORD = Type.LIST, Type.CLASS, Type.PASSWORD
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_STORES = ("JKS", "PKCS12", "PEM")
_JAVA_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_HANDLERS = {
    f"{_JAVA_OAUTH}.OAuthBearerLoginCallbackHandler": "oidc",
    f"{_JAVA_OAUTH}.secured.OAuthBearerLoginCallbackHandler": "oidc",
    f"{_JAVA_OAUTH}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler": "unsecured",
}
_AWS_HANDLERS = {"software.amazon.msk.auth.iam.IAMClientCallbackHandler": "aws"}
_RETRIEVERS = {
    f"{_JAVA_OAUTH}.DefaultJwtRetriever": "default",
    f"{_JAVA_OAUTH}.ClientCredentialsJwtRetriever": "client_credentials",
    f"{_JAVA_OAUTH}.FileJwtRetriever": "file",
    f"{_JAVA_OAUTH}.JwtBearerJwtRetriever": "jwt-bearer",
}
_JAVA_PROVIDERS = "org.apache.kafka.common.config.provider"
_FROM_1 = ((1, None),)
_VALIDATORS = {f"{_JAVA_OAUTH}.{name}": "client" for name in ("DefaultJwtValidator", "ClientJwtValidator")}


def _tls(name: str, kind: Type, default: Any, importance: Importance, what: str, **more: Any) -> Option:
    return Option(f"ssl.{name}", kind, default, importance, what, **{"feature": Feature.TLS, **more})


def _sasl(name: str, kind: Type, default: Any, importance: Importance, what: str, **more: Any) -> Option:
    feature = Feature.OAUTHBEARER if name.startswith(("oauthbearer.", "login.")) else Feature.SASL
    feature = Feature.GSSAPI if name.startswith("kerberos.") else feature
    return Option(f"sasl.{name}", kind, default, importance, what, **{"feature": feature, **more})


_PROTOCOL = (
    Option(
        "security.protocol", STRING, "PLAINTEXT", MEDIUM, "Whether connections are encrypted and authenticated.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), any_case=True, feature=Feature.TLS,
        features_of={
            "SSL": (Feature.TLS,),
            "SASL_PLAINTEXT": (Feature.SASL,),
            "SASL_SSL": (Feature.TLS, Feature.SASL),
        },
    ),
    Option("security.providers", STRING, None, LOW, "Classes of Java security providers.", feature=Feature.JVM),
)  # fmt: skip

_TLS = (
    _tls("protocol", STRING, "TLSv1.3", MEDIUM, "TLS version to ask for."),
    _tls("provider", STRING, None, MEDIUM, "Name of the security provider; no effect here."),
    _tls("cipher.suites", LIST, None, LOW, "Cipher suites that may be used."),
    _tls("enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), MEDIUM, "TLS versions that may be used."),
    _tls("keystore.type", STRING, "JKS", MEDIUM, "Format of the key store.", choices=_STORES),
    _tls(
        "keystore.location", STRING, None, HIGH, "File of the client's key and certificate.",
        placeholders=True, path=True, text_in="ssl.keystore.key and ssl.keystore.certificate.chain",
    ),
    _tls("keystore.password", PASSWORD, None, HIGH, "Password of the key store."),
    _tls("key.password", PASSWORD, None, HIGH, "Password of the private key."),
    _tls("keystore.key", PASSWORD, None, HIGH, "The private key itself, as PEM."),
    _tls("keystore.certificate.chain", PASSWORD, None, HIGH, "The client's certificates themselves, as PEM."),
    _tls("truststore.certificates", PASSWORD, None, HIGH, "The trusted certificates themselves, as PEM."),
    _tls("truststore.type", STRING, "JKS", MEDIUM, "Format of the trust store.", choices=_STORES),
    _tls(
        "truststore.location", STRING, None, HIGH, "File of the trusted certificates.",
        placeholders=True, path=True, text_in="ssl.truststore.certificates",
    ),
    _tls("truststore.password", PASSWORD, None, HIGH, "Password of the trust store."),
    _tls("keymanager.algorithm", STRING, "SunX509", LOW, "Java's algorithm for key managers; no effect here."),
    _tls("trustmanager.algorithm", STRING, "PKIX", LOW, "Java's algorithm for trust managers; no effect here."),
    _tls("endpoint.identification.algorithm", STRING, "https", LOW, "How the host name is checked; empty: not at all."),
    _tls("secure.random.implementation", STRING, None, LOW, "Java's source of randomness; no effect here."),
    _tls("engine.factory.class", CLASS, None, LOW, "Called without arguments, gives the ssl.SSLContext to use."),
    _tls("context", CLASS, None, MEDIUM, "An ssl.SSLContext, in place of all other ssl options.", ours=True),
    _tls(
        "keystore.alias", STRING, None, LOW, "Alias of the key that is meant, in a JKS or PKCS12 store of several.",
        ours=True,
    ),
    _tls(
        "key.location", STRING, None, HIGH, "File of the client's key, if apart from the certificates.",
        ours=True, placeholders=True, path=True, text_in="ssl.keystore.key",
    ),
    _tls(
        "crl.location", STRING, None, LOW, "File of revoked certificates (PEM); "
        "the broker's own certificate is looked up in it, those of authorities are not.",
        ours=True, placeholders=True, path=True,
    ),
    Option(
        "enable.ssl.certificate.verification", BOOLEAN, True, MEDIUM,
        "Whether the broker's certificate is judged at all; false lets anybody in between read everything.",
        feature=Feature.TLS, ours=True,
    ),
)  # fmt: skip

_SASL = (
    _sasl(
        "mechanism", STRING, "GSSAPI", MEDIUM, "SASL mechanism.",
        choices=("GSSAPI", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"), any_case=True,
        features_of={
            "GSSAPI": (Feature.SASL, Feature.GSSAPI),
            "OAUTHBEARER": (Feature.SASL, Feature.OAUTHBEARER),
            "AWS_MSK_IAM": (Feature.SASL, Feature.OAUTHBEARER),
        },
    ),
    _sasl("jaas.config", PASSWORD, None, MEDIUM, "Credentials, in the form of a JAAS entry."),
    _sasl(
        "username", STRING, None, HIGH, "User, for PLAIN and SCRAM; in place of sasl.jaas.config.",
        ours=True, placeholders=True,
    ),
    _sasl("password", PASSWORD, None, HIGH, "Password of sasl.username.", ours=True),
    _sasl(
        "client.callback.handler.class", CLASS, None, MEDIUM,
        "Of Java's classes only Amazon's IAMClientCallbackHandler has a meaning here.", names=_AWS_HANDLERS,
    ),
    _sasl(
        "login.callback.handler.class", CLASS, None, MEDIUM,
        "Gives tokens, as sasl.oauthbearer.token.provider; or Java's OAuthBearerLoginCallbackHandler.",
        names=_HANDLERS,
    ),
    _sasl("login.class", CLASS, None, MEDIUM, "Does the login.", feature=Feature.JVM),
    _sasl("kerberos.service.name", STRING, None, MEDIUM, "Kerberos principal the brokers run as."),
    _sasl(
        "kerberos.principal", STRING, None, LOW, "Kerberos principal of this client.",
        ours=True,
    ),
    _sasl(
        "kerberos.keytab", STRING, None, LOW, "File with the client's Kerberos keys; else the ticket cache is used.",
        ours=True, path=True,
    ),
    _sasl("kerberos.kinit.cmd", STRING, "/usr/bin/kinit", LOW, "Path of kinit."),
    _sasl(
        "kerberos.ticket.renew.window.factor", DOUBLE, 0.80, LOW,
        "Share of a ticket's life after which it is renewed.",
    ),
    _sasl("kerberos.ticket.renew.jitter", DOUBLE, 0.05, LOW, "Random share added to that."),
    _sasl("kerberos.min.time.before.relogin", LONG, 60_000, LOW, "Milliseconds between logins."),
    _sasl(
        "login.refresh.window.factor", DOUBLE, 0.8, LOW,
        "Share of a credential's life after which it is renewed.",
        ranges=((0.5, 1.0),),
    ),
    _sasl("login.refresh.window.jitter", DOUBLE, 0.05, LOW, "Random share added to that.", ranges=((0.0, 0.25),)),
    _sasl("login.refresh.min.period.seconds", INT, 60, LOW, "Seconds between renewals.", ranges=((0, 900),)),
    _sasl(
        "login.refresh.buffer.seconds", INT, 300, LOW,
        "Seconds kept before a credential's end.",
        ranges=((0, 3600),),
    ),
    _sasl(
        "login.connect.timeout.ms", INT, None, LOW,
        "Connecting to the identity provider; not given: 10 s.", ranges=_FROM_1,
    ),
    _sasl(
        "login.read.timeout.ms", INT, None, LOW,
        "The identity provider's whole answer; not given: 10 s.", ranges=_FROM_1,
    ),
    _sasl("login.retry.backoff.ms", LONG, 100, LOW, "First wait between tries at the identity provider."),
    _sasl("login.retry.backoff.max.ms", LONG, 10_000, LOW, "All tries at the identity provider together."),
    _sasl("oauthbearer.scope.claim.name", STRING, "scope", LOW, "Claim with the scope."),
    _sasl("oauthbearer.sub.claim.name", STRING, "sub", LOW, "Claim with the subject."),
    _sasl(
        "oauthbearer.token.endpoint.url", STRING, None, MEDIUM,
        "Where tokens come from: an http, https or file URL.",
        url=True,
    ),
    _sasl("oauthbearer.jwks.endpoint.url", STRING, None, MEDIUM, "Where keys to check tokens come from.", url=True),
    _sasl("oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, LOW, "How often those keys are fetched."),
    _sasl("oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, LOW, "First wait between tries for those keys."),
    _sasl(
        "oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000, LOW,
        "Longest wait between tries for those keys.",
    ),
    _sasl("oauthbearer.clock.skew.seconds", INT, 30, LOW, "Difference of clocks to allow for."),
    _sasl("oauthbearer.expected.audience", LIST, (), LOW, "Audiences a token must be for."),
    _sasl("oauthbearer.expected.issuer", STRING, None, LOW, "Issuer a token must be from."),
    _sasl("oauthbearer.header.urlencode", BOOLEAN, False, LOW, "Encode client id and secret in the header."),
)  # fmt: skip

_OAUTH = (
    _sasl(
        "oauthbearer.token.provider", CLASS, None, HIGH,
        "Gives tokens, on a helper thread: a callable or an object with token(), which gives a text or (text, Unix "
        "seconds of its end, principal, extensions).",
        ours=True,
    ),
    _sasl("oauthbearer.config", STRING, None, LOW, "Handed to confluent-kafka's oauth_cb.", ours=True, guarded=True),
    _sasl(
        "oauthbearer.extensions", LIST, (), LOW, "name=value pairs that are sent with a token.",
        ours=True, guarded=True,
    ),
    _sasl(
        "oauthbearer.method", STRING, "default", LOW, "librdkafka's; oidc needs sasl.oauthbearer.token.endpoint.url.",
        choices=("default", "oidc"), any_case=True, ours=True,
    ),
    _sasl(
        "oauthbearer.aws.region", STRING, None, MEDIUM,
        "Region of sasl.mechanism=AWS_MSK_IAM; not given: AWS_REGION, AWS_DEFAULT_REGION, or in a broker's name.",
        ours=True,
    ),
    _sasl(
        "oauthbearer.client.credentials.client.id", STRING, None, MEDIUM, "The client's id at the identity provider.",
        placeholders=True,
    ),
    _sasl("oauthbearer.client.credentials.client.secret", PASSWORD, None, MEDIUM, "The client's secret there."),
    _sasl("oauthbearer.scope", STRING, None, MEDIUM, "Scopes to ask the identity provider for."),
    _sasl(
        "oauthbearer.jwt.retriever.class", CLASS, None, MEDIUM,
        "How tokens are fetched: one of Java's classes, or as sasl.oauthbearer.token.provider.", names=_RETRIEVERS,
    ),
    _sasl(
        "oauthbearer.jwt.validator.class", CLASS, None, LOW,
        "Checks a fetched token: one of Java's for clients, or a callable that raises.", names=_VALIDATORS,
    ),
    _sasl(
        "oauthbearer.assertion.algorithm", STRING, "RS256", MEDIUM, "How an assertion is signed.",
        choices=("RS256", "ES256"), any_case=True,
    ),
    _sasl("oauthbearer.assertion.claim.aud", STRING, None, MEDIUM, "The claim aud of an assertion."),
    _sasl(
        "oauthbearer.assertion.claim.exp.seconds", INT, 300, LOW, "Seconds after which an assertion ends.",
        ranges=((0, 86_400),),
    ),
    _sasl("oauthbearer.assertion.claim.iss", STRING, None, MEDIUM, "The claim iss; with it they are signed here."),
    _sasl("oauthbearer.assertion.claim.jti.include", BOOLEAN, False, MEDIUM, "Whether an assertion has a claim jti."),
    _sasl(
        "oauthbearer.assertion.claim.nbf.seconds", INT, 60, LOW, "Seconds before now from which an assertion holds.",
        ranges=((0, 3600),),
    ),
    _sasl("oauthbearer.assertion.claim.sub", STRING, None, MEDIUM, "The claim sub of an assertion."),
    _sasl(
        "oauthbearer.assertion.file", STRING, None, MEDIUM, "File of an assertion that is signed elsewhere.",
        path=True,
    ),
    _sasl("oauthbearer.assertion.private.key.file", STRING, None, MEDIUM, "PEM file of the key that signs.", path=True),
    _sasl("oauthbearer.assertion.private.key.passphrase", PASSWORD, None, MEDIUM, "Passphrase of that key."),
    _sasl(
        "oauthbearer.assertion.template.file", STRING, None, MEDIUM, "JSON of further headers and claims.",
        path=True,
    ),
)  # fmt: skip

_PROVIDERS = (
    Option(
        "config.providers", LIST, (), LOW,
        "env, file, directory: ${env:NAME}, ${file:/path:key}, ${directory:/path:file} in the other "
        "options (KIP-297); those of secrets and of ssl.*.location are looked up at each use.",
    ),
    Option(
        "config.providers.env.class", STRING, None, LOW, "Java's class of that name.",
        choices=(f"{_JAVA_PROVIDERS}.EnvVarConfigProvider",),
    ),
    Option(
        "config.providers.file.class", STRING, None, LOW, "Java's class of that name.",
        choices=(f"{_JAVA_PROVIDERS}.FileConfigProvider",),
    ),
    Option(
        "config.providers.directory.class", STRING, None, LOW, "Java's class of that name.",
        choices=(f"{_JAVA_PROVIDERS}.DirectoryConfigProvider",),
    ),
    Option(
        "config.providers.env.param.allowlist.pattern", STRING, None, LOW,
        "Regular expression of the environment variables that may be read; all by default.",
    ),
    Option(
        "config.providers.file.param.allowed.paths", LIST, (), LOW,
        "Files and folders that may be read; all by default.",
        path=True,
    ),
    Option(
        "config.providers.directory.param.allowed.paths", LIST, (), LOW,
        "Folders that may be read; all by default.",
        path=True,
    ),
)  # fmt: skip

SECURITY_OPTIONS: tuple[Option, ...] = (*_PROTOCOL, *_TLS, *_SASL, *_OAUTH, *_PROVIDERS)
