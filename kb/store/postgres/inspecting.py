"""What a server says of itself, for `kb doctor`."""

import statistics
import time
from typing import Final

from psycopg import Connection, sql

from kb.store.server_state import ServerState

_ROUND_TRIPS: Final = 5
# What others do is hidden from a user without rights, but not that they are there.
_STATE: Final = """
SELECT current_setting('server_version'), current_setting('server_version_num')::int / 10000,
  has_table_privilege({table}, 'INSERT') AND has_table_privilege({table}, 'UPDATE')
    AND has_table_privilege({table}, 'DELETE'),
  (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL),
  current_setting('max_connections')::int, current_setting('synchronous_commit'),
  current_setting('fsync') = 'on', pg_is_in_recovery(), (SELECT count(*) FROM pg_stat_replication)
"""


def inspect_server(connection: Connection, schema: str) -> ServerState:
    """Ask the server; measures how long a round trip takes."""
    trips_s: list[float] = []
    for _ in range(_ROUND_TRIPS):
        began_s = time.perf_counter()
        connection.execute("SELECT 1").fetchone()
        trips_s.append(time.perf_counter() - began_s)
    table = sql.Literal(f"{schema}.records")
    row = connection.execute(sql.SQL(_STATE).format(table=table)).fetchone()
    assert row is not None
    return ServerState(
        version=row[0].partition(" ")[0],
        major=row[1],
        round_trip_ms=round(statistics.median(trips_s) * 1000, 2),
        may_write=row[2],
        connections=row[3],
        connections_max=row[4],
        synchronous_commit=row[5],
        fsync=row[6],
        is_replica=row[7],
        replicas=row[8],
    )
