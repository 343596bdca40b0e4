"""A FastAPI service that answers once its record is acknowledged, and with 503 if it is not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from httpx import ASGITransport, AsyncClient, Response

from forebay.aio import AsyncKafkaProducer
from forebay.errors import KafkaError, TopicAuthorizationError
from forebay.testing import EmbeddedBroker, ReadRecord


def service(config: dict[str, Any], topic: str) -> FastAPI:
    """The application under test."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncKafkaProducer(config) as producer:
            app.state.producer = producer
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders")
    async def order(request: Request) -> dict[str, int]:
        try:
            stored = await request.app.state.producer.send_and_wait(topic, await request.body(), key=b"orders")
        except KafkaError as error:
            raise HTTPException(503, str(error)) from error
        return {"offset": stored.offset}

    return app


def ask(app: FastAPI, question: Callable[[AsyncClient], Coroutine[Any, Any, Response]]) -> Response:
    """The answer of a running service."""

    async def main() -> Response:
        transport = ASGITransport(app=app)
        async with app.router.lifespan_context(app), AsyncClient(transport=transport, base_url="http://app") as client:
            return await question(client)

    return asyncio.run(main())


def test_an_order_is_stored(
    kafka_config: dict[str, Any], kafka_topic: str, kafka_records: Callable[..., list[ReadRecord]]
) -> None:
    answer = ask(service(kafka_config, kafka_topic), lambda client: client.post("/orders", content=b"order 41"))
    assert answer.json() == {"offset": 0}
    assert [(record.key, record.value) for record in kafka_records()] == [(b"orders", b"order 41")]


def test_a_refusal_is_an_answer(
    kafka_config: dict[str, Any],
    kafka_topic: str,
    kafka_broker: EmbeddedBroker,
    kafka_records: Callable[..., list[ReadRecord]],
) -> None:
    with kafka_broker.faults.refuse("Produce", TopicAuthorizationError):
        answer = ask(service(kafka_config, kafka_topic), lambda client: client.post("/orders", content=b"order 42"))
    assert answer.status_code == 503 and kafka_topic in answer.json()["detail"]
    assert kafka_records() == []
