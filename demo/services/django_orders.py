"""A Django service in one file that stores orders in Kafka: ``python django_orders.py runserver 8000``.

It answers once the record is acknowledged, and with 503 if it is not.  ``per_process`` makes a producer in each worker
process at its first order, so the file also serves under gunicorn (``gunicorn django_orders:application``).
"""

from __future__ import annotations

import os
import sys

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import execute_from_command_line
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.http import require_POST

import forebay
from forebay.errors import KafkaError

settings.configure(
    DEBUG=False,
    ALLOWED_HOSTS=["localhost", "127.0.0.1"],
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ.get("DJANGO_SECRET_KEY", "only for a try on this machine"),
)
producer = forebay.per_process(
    bootstrap_servers=os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "localhost:9092"),
    delivery_timeout_ms=10_000,
    request_timeout_ms=5_000,
    max_block_ms=5_000,
)


def order(request: HttpRequest) -> JsonResponse:
    try:
        stored = producer().send("orders", request.body, key=b"orders").result(timeout=15)
    except KafkaError as error:
        return JsonResponse({"error": str(error)}, status=503)
    return JsonResponse({"partition": stored.partition, "offset": stored.offset})


urlpatterns = [path("orders", require_POST(order))]
application = WSGIHandler()

if __name__ == "__main__":
    forebay.end_on_sigterm(timeout=20)
    execute_from_command_line(sys.argv)
