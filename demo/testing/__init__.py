"""Three test suites with forebay's pytest plugin, to begin your own from: a FastAPI service, Celery tasks, a Spark job.

``pytest demo/testing`` runs them; no broker, worker or cluster has to be there.
"""
