"""Options as keywords, with their types: for type checkers and editors, which alone import it.

Written by ``make generated`` from the table of options (tools/option_types.py).
"""

from __future__ import annotations

from collections.abc import Callable
from ssl import SSLContext
from typing import Any, Literal, Protocol, TypedDict


class HasSerialize(Protocol):
    """``serialize(topic, headers, data)`` or ``serialize(topic, data)``."""

    @property
    def serialize(self) -> Callable[..., Any]: ...


class HasPartition(Protocol):
    """``partition(topic, key, key_bytes, value, value_bytes, cluster)``."""

    @property
    def partition(self) -> Callable[..., Any]: ...


class HasToken(Protocol):
    """``token()``."""

    @property
    def token(self) -> Callable[..., Any]: ...


class ProducerOptions(TypedDict, total=False):
    """Every option, and every name of another client that is taken; None counts as not given."""

    bootstrap_servers: str | list[str] | tuple[str, ...] | None
    key_serializer: str | Callable[..., Any] | HasSerialize | None
    value_serializer: str | Callable[..., Any] | HasSerialize | None
    acks: Literal["all", "-1", -1, "0", 0, "1", 1] | None
    enable_idempotence: bool | None
    retries: int | None
    max_in_flight_requests_per_connection: int | None
    delivery_timeout_ms: int | None
    request_timeout_ms: int | None
    linger_ms: int | None
    batch_size: int | None
    buffer_memory: int | None
    buffer_memory_max_node_share: float | None
    max_sparse_batches_in_flight: int | None
    max_block_ms: int | None
    max_request_size: int | None
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None
    compression_gzip_level: int | None
    compression_lz4_level: int | None
    compression_zstd_level: int | None
    partitioner_class: str | Callable[..., Any] | HasPartition | None
    partitioner_ignore_keys: bool | None
    partitioner_adaptive_partitioning_enable: bool | None
    partitioner_availability_timeout_ms: int | None
    interceptor_classes: str | list[Any] | tuple[Any, ...] | None
    client_id: str | None
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"] | None
    transactional_id: str | None
    transaction_timeout_ms: int | None
    retry_backoff_ms: int | None
    retry_backoff_max_ms: int | None
    reconnect_backoff_ms: int | None
    reconnect_backoff_max_ms: int | None
    metadata_max_age_ms: int | None
    metadata_max_idle_ms: int | None
    metadata_recovery_strategy: Literal["none", "NONE", "rebootstrap", "REBOOTSTRAP"] | None
    metadata_recovery_rebootstrap_trigger_ms: int | None
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None
    socket_connection_setup_timeout_ms: int | None
    socket_connection_setup_timeout_max_ms: int | None
    connections_max_idle_ms: int | None
    proxy_url: str | Callable[[], str] | None
    broker_address_map: str | list[str] | tuple[str, ...] | Callable[[str, int], tuple[str, int]] | None
    broker_address_family: Literal["any", "ANY", "v4", "V4", "v6", "V6"] | None
    metric_reporters: str | list[Any] | tuple[Any, ...] | None
    metrics_num_samples: int | None
    metrics_sample_window_ms: int | None
    metrics_recording_level: Literal["INFO", "DEBUG", "TRACE"] | None
    describe_socket: str | None
    enable_metrics_push: bool | None
    key_serializer_encoding: str | None
    value_serializer_encoding: str | None
    serializer_encoding: str | None
    default_list_key_serde_inner: str | Callable[..., Any] | HasSerialize | None
    default_list_value_serde_inner: str | Callable[..., Any] | HasSerialize | None
    security_protocol: (
        Literal["PLAINTEXT", "plaintext", "SSL", "ssl", "SASL_PLAINTEXT", "sasl_plaintext", "SASL_SSL", "sasl_ssl"]
        | None
    )
    security_providers: str | None
    ssl_protocol: str | None
    ssl_provider: str | None
    ssl_cipher_suites: str | list[str] | tuple[str, ...] | None
    ssl_enabled_protocols: str | list[str] | tuple[str, ...] | None
    ssl_keystore_type: Literal["JKS", "PKCS12", "PEM"] | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | Callable[[], str] | None
    ssl_key_password: str | Callable[[], str] | None
    ssl_keystore_key: str | Callable[[], str] | None
    ssl_keystore_certificate_chain: str | Callable[[], str] | None
    ssl_truststore_certificates: str | Callable[[], str] | None
    ssl_truststore_type: Literal["JKS", "PKCS12", "PEM"] | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | Callable[[], str] | None
    ssl_keymanager_algorithm: str | None
    ssl_trustmanager_algorithm: str | None
    ssl_endpoint_identification_algorithm: str | None
    ssl_secure_random_implementation: str | None
    ssl_engine_factory_class: str | Callable[..., Any] | None
    ssl_context: str | SSLContext | None
    ssl_keystore_alias: str | None
    ssl_key_location: str | None
    ssl_crl_location: str | None
    enable_ssl_certificate_verification: bool | None
    sasl_mechanism: (
        Literal[
            "GSSAPI",
            "gssapi",
            "PLAIN",
            "plain",
            "SCRAM-SHA-256",
            "scram-sha-256",
            "SCRAM-SHA-512",
            "scram-sha-512",
            "OAUTHBEARER",
            "oauthbearer",
            "AWS_MSK_IAM",
            "aws_msk_iam",
        ]
        | None
    )
    sasl_jaas_config: str | Callable[[], str] | None
    sasl_username: str | None
    sasl_password: str | Callable[[], str] | None
    sasl_client_callback_handler_class: str | Callable[..., Any] | None
    sasl_login_callback_handler_class: str | Callable[..., Any] | HasToken | None
    sasl_login_class: str | Callable[..., Any] | None
    sasl_kerberos_service_name: str | None
    sasl_kerberos_principal: str | None
    sasl_kerberos_keytab: str | None
    sasl_kerberos_kinit_cmd: str | None
    sasl_kerberos_ticket_renew_window_factor: float | None
    sasl_kerberos_ticket_renew_jitter: float | None
    sasl_kerberos_min_time_before_relogin: int | None
    sasl_login_refresh_window_factor: float | None
    sasl_login_refresh_window_jitter: float | None
    sasl_login_refresh_min_period_seconds: int | None
    sasl_login_refresh_buffer_seconds: int | None
    sasl_login_connect_timeout_ms: int | None
    sasl_login_read_timeout_ms: int | None
    sasl_login_retry_backoff_ms: int | None
    sasl_login_retry_backoff_max_ms: int | None
    sasl_oauthbearer_scope_claim_name: str | None
    sasl_oauthbearer_sub_claim_name: str | None
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int | None
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int | None
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int | None
    sasl_oauthbearer_clock_skew_seconds: int | None
    sasl_oauthbearer_expected_audience: str | list[str] | tuple[str, ...] | None
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_header_urlencode: bool | None
    sasl_oauthbearer_token_provider: str | Callable[..., Any] | HasToken | None
    sasl_oauthbearer_config: str | None
    sasl_oauthbearer_extensions: str | list[str] | tuple[str, ...] | None
    sasl_oauthbearer_method: Literal["default", "DEFAULT", "oidc", "OIDC"] | None
    sasl_oauthbearer_aws_region: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | Callable[[], str] | None
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_jwt_retriever_class: str | Callable[..., Any] | HasToken | None
    sasl_oauthbearer_jwt_validator_class: str | Callable[..., Any] | None
    sasl_oauthbearer_assertion_algorithm: Literal["RS256", "rs256", "ES256", "es256"] | None
    sasl_oauthbearer_assertion_claim_aud: str | None
    sasl_oauthbearer_assertion_claim_exp_seconds: int | None
    sasl_oauthbearer_assertion_claim_iss: str | None
    sasl_oauthbearer_assertion_claim_jti_include: bool | None
    sasl_oauthbearer_assertion_claim_nbf_seconds: int | None
    sasl_oauthbearer_assertion_claim_sub: str | None
    sasl_oauthbearer_assertion_file: str | None
    sasl_oauthbearer_assertion_private_key_file: str | None
    sasl_oauthbearer_assertion_private_key_passphrase: str | Callable[[], str] | None
    sasl_oauthbearer_assertion_template_file: str | None
    config_providers: str | list[str] | tuple[str, ...] | None
    config_providers_env_class: Literal["org.apache.kafka.common.config.provider.EnvVarConfigProvider"] | None
    config_providers_file_class: Literal["org.apache.kafka.common.config.provider.FileConfigProvider"] | None
    config_providers_directory_class: Literal["org.apache.kafka.common.config.provider.DirectoryConfigProvider"] | None
    config_providers_env_param_allowlist_pattern: str | None
    config_providers_file_param_allowed_paths: str | list[str] | tuple[str, ...] | None
    config_providers_directory_param_allowed_paths: str | list[str] | tuple[str, ...] | None
    ssl_ca_location: str | None
    ssl_cafile: str | None
    ssl_ca_pem: str | Callable[[], str] | None
    ssl_cadata: str | Callable[[], str] | None
    ssl_certificate_location: str | None
    ssl_certfile: str | None
    ssl_certificate_pem: str | Callable[[], str] | None
    ssl_key_pem: str | Callable[[], str] | None
    ssl_keyfile: str | None
    ssl_password: str | Callable[[], str] | None
    ssl_check_hostname: bool | str | None
    ssl_crlfile: str | None
    ssl_ciphers: str | list[str] | tuple[str, ...] | None
    sasl_mechanisms: (
        Literal[
            "GSSAPI",
            "gssapi",
            "PLAIN",
            "plain",
            "SCRAM-SHA-256",
            "scram-sha-256",
            "SCRAM-SHA-512",
            "scram-sha-512",
            "OAUTHBEARER",
            "oauthbearer",
            "AWS_MSK_IAM",
            "aws_msk_iam",
        ]
        | None
    )
    sasl_plain_username: str | None
    sasl_plain_password: str | Callable[[], str] | None
    socks5_proxy: str | Callable[[], str] | None
    sasl_oauthbearer_client_id: str | None
    sasl_oauthbearer_client_secret: str | Callable[[], str] | None
    sasl_oauth_token_provider: str | Callable[..., Any] | HasToken | None
    oauth_cb: Callable[..., Any] | None
