"""Which words may stand in a log line although nobody vouched for them?

The words that programs use when they say what they do. A host name or a path is rarely built from
these alone, and a word that often names a machine is left out on purpose, however common it is.
Inflected forms (`-s`, `-ed`, `-ing`, …) are recognised, so only base forms are listed. Nothing here
looks at punctuation or at more than one word. Next: `harmless`, which takes whole texts apart.
"""

import re
from functools import cache
from typing import Final

_PLAIN: Final = """
a able abort about above accept access account ack acknowledge acquire act action activate active activity
actual actually adapter add addition additional adjust admin after again against age agent agree ahead alarm
alert alias alive all allocate allow almost alone along already also alter always am amount an analyse
analyze and another answer any anything api app append application apply approve archive are aren arg args
argument around arrange array arrive as ask assert assign async at attach attempt attribute audit
authenticate author auto automatic available average avoid await away back background backlog backoff backup
bad balance bar base basic batch be became because become been before began begin behind being below best
better between big bind bit blank block body book bool boolean boot both bottom bound box branch break bridge
brief broken browser bucket budget buffer bug build builder built bulk bump bundle busy but button buy by
byte cache calculate calendar call callback caller came can cancel cancellation candidate capacity card care
cart case cash catch caught cause ceiling certificate chain chance change channel char character charge
charset chart check checkout checkpoint checksum child children choice choose chunk circuit claim clamp class
clean cleanup clear click client clock close cluster code cold collect collection column come command comment
commit common compact company compare compatible compile complete complex component compress compute
concurrency concurrent condition config configuration configure confirm conflict congestion connect
connection consider consistent constant constraint consume consumer contact contain container content context
continue contract control controller conversion convert copy core correct correlation corrupt cost could
couldn count counter country coupon course cover crash create creation credential credit critical cron
currency current currently custom customer cut cycle daemon daily damage dark dashboard data database date
day dead deadline deadlock deal debug decide decimal declare decline decode decrease dedicated deep default
defer define degrade delay delete deliver delivery demand deny depend dependency deploy deployment deprecate
depth derive describe description destroy detach detail detect determine dev develop developer device did
didn diff differ different digest digit direct directory dirty disable discard disconnect discount discover
disk dispatch display do document doesn done double down download draft drain drift drive driver drop dry due
dump duplicate duration during dynamic each eager earlier early easy echo edge edit effect either elapsed
element else email emit employee empty enable encode encoding encounter encrypt end enforce engine enough
enqueue ensure enter entire entity entry enum environment equal erase errno error escape establish estimate
eta evaluate even event ever every everything evict eviction exact exceed except exception exchange exclude
exec execute execution executor exhaust exist exit expand expect expire expiry explicit export expose extend
extension external extra extract factor factory fail failover failure fall fallback false fast fatal fault
feature feed fetch few fewer field file fill filter final finally find fine finish fire first fit fix flag
flat fleet float flow flush folder follow for force foreground foreign fork form format formatter forward
found frame framework free freeze frequency fresh from front full function further future gap garbage gate
gather gauge gave general generate generic get give given global go goes gone good got grace graceful grant
graph great group grow guard guess guest had half halt hand handle handler handshake hang happen hard has
hash hasn have haven he head header health healthy heap heartbeat heavy held hello help here hidden high hint
histogram history hit hold hook hot hour hourly how http https idle if ignore image immediate immediately
implementation implicit import improve in inactive inbound include incomplete incorrect increase increment
index info inform information init initial initialise initialize inline inner input insert inside inspect
install instance instead instruction insufficient int integer integrity intend interactive interface internal
interrupt interval into invalid invalidate inventory invoice invoke io is isn isolate issue it item iterate
iteration its job join json jump just keep kept kernel kick kill kind knew know label lag language large last
late latency later latest launch layer layout lazy leader leak learn lease least leave left legacy length
less let level library license life light like likely limit limiter line link list listen listener little
live load loader local locale lock log logger logic login logout long longer look lookup loop lose loss lost
lot low lower machine made main maintain maintenance major make manage manager manual many map mark market
mask master match max maximum may maybe mean measure meet member memory merge message met method metric
middle middleware midnight might migrate migration milli millisecond min minimum minor minus minute mismatch
miss mode model modify module moment monitor month monthly more most mount move much multi multiple must
mutate mutex my name namespace native near nearly need negative neither nested network never new newer next
night no node none noop nor normal normalise normalize not note nothing notice notification notify now null
number object observe obsolete obtain occur of off offer offline offset often ok okay old oldest on once one
online only onto open operate operation operator option optional or order origin original other otherwise our
out outbound outcome outer outgoing outlier output outside over overall overdue overflow overhead override
overrun own owner pace pack package packet page pair panic parallel param parameter parent parse parser part
partial partition party pass passive password past patch pattern pause pay payload payment peak peer pending
people per percent percentile perform performance period periodic permanent permission permit persist person
phase pick ping pipe pipeline place plain plan platform play please plug plugin plus point policy poll pool
poor pop populate port position positive possible post postpone power pre precondition prefer prefetch prefix
prepare presence present preserve press pressure prevent previous price primary print prior priority private
probe problem proceed process processor prod produce producer product production profile program progress
project promise promote prompt proper property propose protect protocol prove provide provider provision
proxy prune public publish publisher pull purchase purge purpose push put python quality quantity query queue
quick quiet quit quota quote race raise ran random range rank rare rate ratio raw reach react read reader
ready real reason rebalance rebuild recalculate receive recent record recover recovery recycle redact
redirect reduce reference refresh refund refuse regenerate region register registration registry regular
reindex reinstall reject relate relation relay release relevant reload remain remote removal remove rename
render renew reopen repair repeat replace replay replica replicate reply report repository request require
rerun reschedule reserve reset resize resolve resource respond response rest restart restore restrict result
resume retain retention retire retrieve retry return reuse reverse revert review revision revoke right role
roll rollback root rotate rotation round route row rule run runner runtime safe said sale same sample save
saw say scale scan schedule scheduler schema scope score screen script search second secondary section secure
security see seem seen segment select self sell send sensor sent separate sequence serial serialise serialize
serve server service session set setting settle setup several shadow shape shard share sharing she shell
shift ship shipment short should shouldn show shut shutdown side sign signal signature signup silent similar
simple since single size skip slave sleep slice slot slow small smoke smooth snapshot so socket soft some
something soon sort source space span spawn spec special specific speed spell spend split spot spread stable
stack stage staging stale stall stamp standard standby start startup state statement static statistic stats
status stay steady step still stock stop storage store strategy stream strict string strong structure stuck
style subject submission submit subscribe subscriber subscription subset substitute subtask succeed success
successful such sudden suffix suggest suite sum summary supply support suppose suspend swap sweep switch
symbol sync synchronise synchronize syntax system table tag tail take taken target task taught team tell temp
template temporary tenant terminal terminate termination test text than that the their them then there these
they thing think this thread threshold throttle through throughput throw tick ticket tidy tie time timeout
timer timestamp to today together token told tolerance too took tool top topic total touch toward trace track
traffic transaction transfer transform transient transition transport trap tree trigger trim trouble true
truncate trust try tune turn twice type unable unavailable unchanged under undo unexpected unhandled
unhealthy uniform unique unit unknown unless unlikely unlock unreachable unset unsupported until unused up
update upgrade upload upper uptime urgent usage use user usual utilisation utility utilization valid validate
validation value variable variant various vary verb verbose verify version very via view violate violation
virtual visible visit wait waiter wake walk want warm warn warning was wasn watch watcher way we week weekly
weight well went were what when where whether which while who whole why wide will window wipe with within
without won word work worker workflow workspace world would wouldn wrap write writer written wrong yes
yesterday yet yield you young your zero zombie zone
"""

_TECHNICAL: Final = """
ascii asgi asyncio atexit auth authorization bom brotli bz2 charset cli cors cpu crc csv ctx deflate deque df
dict dns dto eacces eof epoch err errcode etag exc fd fifo fn fs fsync func gc gb gid gmt grpc gunicorn gzip
hex hr html http2 hz id idx ids impl inode ip ipv4 ipv6 jq jwt kb kib kpi lb len lifo lineno lru lz4 markdown
mb md5 mem mib mime mkdir ms msg mypy nan nbytes nr ns num nursery oauth obj ok oom openapi os p50 p90 p95
p99 pct pdf pid pipe png ppid pretty pubsub pytest qps qsize ram rc rcvd recv redo regex req resp rest rfc
rpc rps rss sdk sec sha1 sha256 sigint sigkill sigterm sla slo smtp soap sql sqlite src ssh ssl std stderr
stdin stdlib stdout str structlog subprocess svc sys tcp tier tls tmp todo toml trio ts tsv ttl tty tuple tx
txn udp unicode ui uid ulimit unix unraisable url urls us usr utc utf utf8 uuid uvicorn var wal websocket ws
wsgi xml yaml zip zlib zstd get head post put patch delete options trace critical fatal notset mainthread
taskgroup base arithmetic assertion recursion lookup indentation environment keyboard keyerror stopiteration
mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday jan feb mar apr jun jul
aug sep oct nov dec january february march april june july august september october november december one two
three four five six seven eight nine ten eleven twelve hundred thousand million third fourth fifth sift seal
sealed tripwire lapsed swept eu uk emea apac usd eur gbp jpy
"""

# Names that machines on private networks often have: never taken for a short word of nobody's.
_MACHINES: Final = """
acme broadcasthost confluence consul corp docker elastic example extranet gateway gitea github gitlab grafana
hass home homeassistant intranet jenkins jira kibana kubernetes lan ldap localdomain localhost metadata minio
nas nexus nginx onion payroll pihole portal postgres printer prometheus proxmox rabbitmq redis router
sharepoint sonarqube splunk vault vcenter wiki www zabbix
"""

# Labels that stand last in host names often enough that `word.label` may be a host.
_LAST_LABELS: Final = """
academy agency ai app arpa art at au be biz blog br ca cafe capital care cash cc center ch city cl click
cloud club cn co com company computer corp cz de dev digital dk download edu email es eu example exchange
expert fi finance fm fr fun gg global gov gr group guide help home host hosting hu id ie il in info int
internal intranet invalid io ir is it jobs jp kr la lan law legal life link live loan local localhost lt ltd
lv market me media mil mobi money name net network news nl no nz onion online org page party ph pl plus press
pro pt pub review ro rocks rs ru school se services sg sh shop si site sk so social software solutions space
store studio systems team tech test to today tools top tr travel tv tw ua uk us video vip website wiki work
world ws xyz zip zone
"""

_ENDS_EVENTS: Final = """
click download email exchange group help id link live market name network page press review store work
"""
_ENDINGS: Final = ("s", "es", "ed", "d", "ing", "er", "ers", "ly", "able", "n", "en", "al", "ment")
_SMALLEST_BASE: Final = 3
_LONGEST: Final = 24
_NUMBERED: Final = re.compile(r"[a-z]{1,16}\d{1,3}")


@cache
def _known() -> frozenset[str]:
    return frozenset((_PLAIN + _TECHNICAL).split())


@cache
def _machines() -> frozenset[str]:
    return frozenset(_MACHINES.split())


@cache
def _last_labels() -> frozenset[str]:
    return frozenset(_LAST_LABELS.split()) - frozenset(_ENDS_EVENTS.split())


def is_known(word: str) -> bool:
    """Say whether `word`, in any case, is a word of the vocabulary or a regular form of one."""
    if not 0 < len(word) <= _LONGEST:
        return False
    word = word.lower()
    known = _known()
    return word in known or any(_is_form(word, ending, known) for ending in _ENDINGS)


def _is_form(word: str, ending: str, known: frozenset[str]) -> bool:
    base = word[: -len(ending)]
    if len(base) < _SMALLEST_BASE or not word.endswith(ending):
        return False
    if base in known or base + "e" in known:
        return True
    if base[-1] == base[-2] and base[:-1] in known:  # stopped, planning
        return True
    return base[-1] == "i" and base[:-1] + "y" in known  # retried, entries


def is_numbered(word: str) -> bool:
    """Say whether `word` is a known word with a small number after it, as in `worker3`."""
    return bool(_NUMBERED.fullmatch(word)) and is_known(word.rstrip("0123456789"))


def names_machine(word: str) -> bool:
    """Say whether `word` often is the whole name of a machine on a private network."""
    return word.lower() in _machines()


def ends_host(label: str) -> bool:
    """Say whether a dotted name that ends in `label` is better taken for a host."""
    return label.lower() in _last_labels()
