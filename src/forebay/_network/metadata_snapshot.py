"""What is known of the cluster, and how a response changes it: pure functions from one snapshot to the next.

If two answers about a partition differ, the one with the newer leader epoch is right, whichever came last (KIP-320).
Epochs count only from Metadata v9 on; before that, brokers may have sent old ones (KAFKA-9212).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from forebay._protocol.metadata import MetadataPartition, MetadataResponse, MetadataTopic
from forebay.errors import KafkaError, error_for
from forebay.model import Node, PartitionInfo, TopicPartition
from forebay.model._cluster import Cluster

NO_LEADER = -1
NO_EPOCH = -1
RELIABLE_EPOCHS_SINCE = 9
INVALID_TOPIC = 17
TOPIC_AUTHORIZATION_FAILED = 29

Topics = Mapping[str, Mapping[int, "PartitionState"]]


class PartitionState(NamedTuple):
    """A partition by node ids: the leader's id may be known before its address."""

    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class MetadataSnapshot(NamedTuple):
    """The cluster at one time; replaced as a whole."""

    nodes: Mapping[int, Node] = MappingProxyType({})
    topics: Topics = MappingProxyType({})
    topic_ids: Mapping[str, bytes] = MappingProxyType({})
    cluster_id: str | None = None
    controller_id: int = NO_LEADER
    unauthorized: frozenset[str] = frozenset()
    invalid: frozenset[str] = frozenset()

    def partition(self, where: TopicPartition) -> PartitionState | None:
        return self.topics.get(where.topic, {}).get(where.partition)

    def cluster(self, version: int, before: MetadataSnapshot | None = None, shown: Cluster | None = None) -> Cluster:
        """The snapshot as partitioners and the sender read it: a leader without an address is no leader.

        Args:
            version: of the new picture.
            before: the snapshot that ``shown``, the picture so far, was made of.  Of a topic that is the same object in
                both, nothing is made anew: most answers about thousands of partitions change none of them.
            shown: see ``before``.
        """
        nodes = self.nodes
        # A partition's leader is an address, which a snapshot with the same topics may have changed.
        known = before.topics if before is not None and before.nodes == nodes else {}
        unchanged = [topic for topic, partitions in self.topics.items() if known.get(topic) is partitions]
        told = set(unchanged)
        infos = [
            PartitionInfo(
                topic,
                number,
                # The id is compared, too: the first bootstrap server has the id that means "no leader".
                nodes.get(state.leader_id) if state.leader_id >= 0 else None,
                state.leader_epoch,
                state.replicas,
                state.in_sync_replicas,
                state.offline_replicas,
            )
            for topic, partitions in self.topics.items()
            if topic not in told
            for number, state in partitions.items()
        ]
        return Cluster(
            nodes.values(),
            infos,
            cluster_id=self.cluster_id,
            controller_id=self.controller_id,
            unauthorized_topics=self.unauthorized,
            invalid_topics=self.invalid,
            topic_ids=self.topic_ids,
            version=version,
            before=shown,
            unchanged=unchanged,
        )

    def rebootstrapped(self, nodes: Iterable[Node]) -> MetadataSnapshot:
        """Back to the bootstrap servers (KIP-899).

        Partitions stay, without leaders.  So records that are sent meanwhile wait in the accumulator, and callers of
        send() do not wait for metadata.
        """
        topics = {
            topic: {number: state._replace(leader_id=NO_LEADER) for number, state in partitions.items()}
            for topic, partitions in self.topics.items()
        }
        return MetadataSnapshot({node.id: node for node in nodes}, topics, self.topic_ids)


class SeenEpochs:
    """The newest leader epoch of each partition; kept when the partition is gone from the metadata."""

    def __init__(self) -> None:
        self._seen: dict[TopicPartition, int] = {}

    def get(self, where: TopicPartition) -> int | None:
        return self._seen.get(where)

    def note(self, where: TopicPartition, epoch: int) -> bool:
        """Remembers an epoch from another response; False if it is not newer."""
        if epoch <= self._seen.get(where, NO_EPOCH):
            return False
        self._seen[where] = epoch
        return True

    def judge(self, where: TopicPartition, epoch: int, recreated: bool) -> tuple[bool, bool]:
        """Whether an answer with this epoch (-1: none) is accepted, and whether the epoch is new."""
        seen = self._seen.get(where)
        if epoch == NO_EPOCH:
            self._seen.pop(where, None)
            return True, False
        if seen is None or recreated or epoch > seen:
            self._seen[where] = epoch
            return True, True
        return epoch == seen, False


class Applied:
    """The result of a response: the new snapshot and what follows from it."""

    __slots__ = ("by_epochs", "errors", "news", "snapshot", "stale")

    def __init__(self, snapshot: MetadataSnapshot) -> None:
        self.snapshot = snapshot
        self.errors: dict[str, KafkaError] = {}
        """By topic, of every kind."""
        self.news = False
        """The answer has something new: a leader epoch or, if the broker names none, any change of the snapshot."""
        self.by_epochs = True
        """Each partition came with an epoch that counts; if not, the snapshots have to be compared."""
        self.stale = False
        """A topic or partition has no leader yet, or the broker did not know it: ask again."""


def apply_response(
    snapshot: MetadataSnapshot,
    seen: SeenEpochs,
    response: MetadataResponse,
    version: int,
    *,
    partial: bool,
    retained: Callable[[str], bool],
) -> Applied:
    """The snapshot after ``response``.

    Args:
        version: of the Metadata API; decides whether epochs count.
        partial: the response is about some of the topics only; the others stay as they are.
        retained: whether a topic is still wanted.
    """
    applied = Applied(snapshot)
    answered = {topic.name for topic in response.topics if topic.name is not None}
    # Called once for each topic, because it may drop an idle topic.
    wanted = {name for name in answered | set(snapshot.topics if partial else ()) if retained(name)}
    kept = wanted - answered if partial else set()
    topics = {name: known for name, known in snapshot.topics.items() if name in kept}
    ids = {name: known for name, known in snapshot.topic_ids.items() if name in kept}
    for topic in response.topics:
        name = topic.name
        if name is None or name not in wanted:
            continue
        error = error_for(topic.error_code, topic=name)
        if error is not None:
            applied.errors[name] = error
            applied.stale |= error.invalid_metadata
            continue
        topics[name] = _partitions(applied, snapshot, seen, topic, name, reliable=version >= RELIABLE_EPOCHS_SINCE)
        if topic.topic_id is not None:
            ids[name] = topic.topic_id
    applied.snapshot = MetadataSnapshot(
        {node.id: node for node in response.brokers},
        topics,
        ids,
        response.cluster_id,
        response.controller_id,
        _refused(applied, TOPIC_AUTHORIZATION_FAILED, (snapshot.unauthorized if partial else frozenset()) - answered),
        _refused(applied, INVALID_TOPIC, (snapshot.invalid if partial else frozenset()) - answered),
    )
    if not applied.by_epochs or version < RELIABLE_EPOCHS_SINCE:
        applied.news |= applied.snapshot != snapshot
    return applied


def _refused(applied: Applied, code: int, before: frozenset[str]) -> frozenset[str]:
    return before | {topic for topic, error in applied.errors.items() if error.code == code}


def merge_leaders(
    snapshot: MetadataSnapshot,
    seen: SeenEpochs,
    hints: Mapping[TopicPartition, tuple[int, int]],
    nodes: Iterable[Node],
) -> tuple[MetadataSnapshot, frozenset[TopicPartition]]:
    """The snapshot after leaders that a produce response named (KIP-951): known partitions and newer epochs only.

    Args:
        hints: leader id and leader epoch by partition.
        nodes: the addresses of the leaders.

    Returns:
        The new snapshot, and the partitions whose leader changed.
    """
    known = {**snapshot.nodes, **{node.id: node for node in nodes}}
    # A leader that goes may be named for thousands of partitions of one topic, so each topic is copied once.
    copied: dict[str, dict[int, PartitionState]] = {}
    changed = set()
    for where, (leader_id, epoch) in hints.items():
        state = snapshot.partition(where)
        if state is None or leader_id not in known or epoch <= state.leader_epoch or not seen.note(where, epoch):
            continue
        partitions = copied.get(where.topic)
        if partitions is None:
            partitions = copied[where.topic] = dict(snapshot.topics[where.topic])
        partitions[where.partition] = state._replace(leader_id=leader_id, leader_epoch=epoch)
        changed.add(where)
    if not changed:
        return snapshot, frozenset()
    return snapshot._replace(nodes=known, topics={**snapshot.topics, **copied}), frozenset(changed)


def _partitions(
    applied: Applied, old: MetadataSnapshot, seen: SeenEpochs, topic: MetadataTopic, name: str, *, reliable: bool
) -> Mapping[int, PartitionState]:
    """What to believe of a topic: the old mapping itself if nothing changed, so that what follows from it may stay."""
    known_id = old.topic_ids.get(name)
    recreated = topic.topic_id is not None and topic.topic_id != known_id
    known = old.topics.get(name, {})
    believed: dict[int, PartitionState] = {}
    for found in topic.partitions:
        number = found.partition
        epoch = found.leader_epoch if reliable else NO_EPOCH
        before, state = known.get(number), _state(found, epoch)
        if before is not None and before == state and epoch != NO_EPOCH and not recreated:
            # Its epoch is the newest one: it was noted with this state, and a newer one would have changed the state.
            believed[number] = before
        else:
            fresh, news = seen.judge(TopicPartition(name, number), epoch, recreated)
            applied.news |= news
            applied.by_epochs &= epoch != NO_EPOCH
            if fresh:
                believed[number] = state
            elif before is not None:
                believed[number] = before
        error = error_for(found.error_code)
        applied.stale |= error is not None and error.invalid_metadata
    return known if believed == known else believed


def _state(found: MetadataPartition, epoch: int) -> PartitionState:
    return PartitionState(found.leader_id, epoch, found.replicas, found.in_sync_replicas, found.offline_replicas)
