"""What every setting and every variable means. The generator insists that it is complete and has nothing too much."""

from __future__ import annotations

SETTINGS = {
    # How the paper's model is built.
    "model.enabled": "The paper's model takes part; without it the recall head answers alone.",
    "model.dim": "Length of an entity's vector; a multiple of 4 and of `heads`.",
    "model.layers": "Layers of the Transformer that reads an entity's chain of latest facts.",
    "model.heads": "Its attention heads.",
    "model.dropout": "Dropout in chain encoder and decoder while training.",
    "model.text_dropout": "Dropout on the vectors of names while training, against learning busy names by heart.",
    "model.encoder": (
        "What reads names: `minilm`, which comes with the package; `hash:64`, hashed words and letters, no model; "
        "or the name or folder of a transformers model with `:mean` or `:cls`."
    ),
    "model.entity": "An entity begins with its name's vector (`text`) or with a learned one (`learned`).",
    "model.chain_length": "Facts in a chain at most; the nearest by relation are chosen when there are more.",
    "model.chain_window": "Ticks that a chain reaches back.",
    "model.chain_capacity": "Latest facts of an entity that are kept to choose from.",
    "model.prior": "The cluster's prototype takes part; without it an entity has only its name and its memory.",
    "model.codes": "Clusters of names.",
    "model.prototype_decay": "How much of a prototype stays at each update.",
    "model.memory": "How memory is updated: `ema`, `gru`, `attention` over the latest signals, or `none`.",
    "model.decay": "Of the moving average: one for all (`shared`), for each `entity`, or for each `dimension`.",
    "model.ring": 'Signals kept for `memory = "attention"`.',
    "model.gate": "How memory is mixed in: `adaptive`, or always half and half (`constant`).",
    "model.timing": "In the snapshot protocol: memory takes the queries' signals in `before` or `after` scoring.",
    "model.filters": "Filters of the decoder's convolution.",
    "model.kernel": "Width of that convolution; odd.",
    # What recurred.
    "recall.enabled": "The recall head takes part.",
    "recall.fast": "Ticks in which a quick count falls to 1/e.",
    "recall.slow": "Ticks in which a slow count falls to 1/e.",
    "recall.pair_slots": "Pairs (relation, other) kept for each entity; a multiple of 16.",
    "recall.relation_slots": "Entities kept for each relation; a multiple of 16.",
    "recall.neighbours": "Entities of the nearest names that speak for a newcomer.",
    "recall.cold_below": "Interactions below which a subject counts as a newcomer.",
    "recall.heads": "Learned ways in which relations resemble each other.",
    "recall.hidden": "Width of the layers that weigh counts and ages.",
    "recall.relation_dim": "Length of a relation's vector.",
    "recall.name_dim": "Length of a name's vector in the part that says how well two names go together.",
    "recall.text_dropout": "Dropout on names there.",
    # How parameters are learned.
    "train.protocol": "By which protocol the epochs are compared.",
    "train.epochs": "Passes over the facts, at most.",
    "train.patience": "Epochs without an improvement before it ends; 0 never ends early.",
    "train.lr": "Learning rate of the paper's model.",
    "train.recall_lr": "Learning rate of the recall head.",
    "train.weight_decay": "Weight decay.",
    "train.clip": "Largest norm of the gradient.",
    "train.vq_weight": "Weight of the clusters' loss.",
    "train.alone_weight": "Weight of the paper's model's own loss beside that of both together.",
    "train.batch": "Queries in a step; a time is never mixed with another.",
    "train.burn_in": "Share of the first times that are only remembered: everybody is a newcomer there.",
    "train.strangers": "Share of the queries about young subjects that are asked as if the subject were unseen.",
    "train.strangers_below": "Interactions below which a subject is young.",
    "train.select": "Slices whose mean MRR decides which epoch is kept.",
    "train.valid_every": "Epochs between two measurements.",
    "train.seed": "Seed of everything random.",
    # How rounds of retraining are decided and watched.
    "retrain.window": "Newest share of the times, on which bundles are compared; also what `train --to` holds back.",
    "retrain.margin": "By how much the new bundle's MRR must be better to be promoted.",
    "retrain.slice": "Which queries decide, as in `adatkg evaluate`.",
    "retrain.keep": "Bundles that stay in the store; the present one and the one before it always do.",
    "retrain.scores": "The worker's page with the MRR that `--every drop-0.03` watches.",
    "retrain.metrics_port": "Port of the trainer's metrics for Prometheus; 0 is none.",
    "retrain.metrics_host": "Address of that port.",
    # Where the brokers are.
    "kafka.bootstrap": "`host:port` of the brokers, several separated by commas.",
    "kafka.topic_prefix": "Prefix of the topics; several systems can share a cluster by it.",
    "kafka.security": "`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.",
    "kafka.mechanism": "`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.",
    "kafka.username": "User for SASL.",
    "kafka.password_file": "A file with the password for SASL and nothing else.",
    "kafka.cafile": "PEM file with the certificates that brokers are checked against; else the system's.",
    "kafka.certfile": "PEM file with our own certificate, where brokers want one.",
    "kafka.compression": (
        "How all that we send is compressed: `none` or `gzip`, which every client can read, or `snappy`, `lz4` or "
        "`zstd`, for which readers need a library."
    ),
    "kafka.keyfile": "PEM file with its key, without a password; it may stand in `certfile` too.",
    # How a worker works.
    "stream.models": "Model store, a folder or an fsspec URL.",
    "stream.snapshots": "Where states are kept, a folder or an fsspec URL.",
    "stream.device": "`auto`, `cpu` or `cuda`.",
    "stream.group": "Consumer group; workers of one group share the graphs.",
    "stream.replica": "Which replica this is, from 1.",
    "stream.replicas": "How many replicas there are; each takes in every fact and answers its share of the queries.",
    "stream.batch_events": "Events in a batch, at most.",
    "stream.batch_seconds": "Seconds after its first event when a batch is closed though it is not full.",
    "stream.snapshot_events": "Events after which a snapshot is due.",
    "stream.snapshot_seconds": "Seconds with something new after which a snapshot is due.",
    "stream.keep_snapshots": "Snapshots kept for each graph; at least 2.",
    "stream.late": "Facts older than the watermark: `apply` counts them as of now, `refuse` sets them aside.",
    "stream.max_jump": "Ticks by which the watermark may move at once.",
    "stream.heuristic": "Mark what counting alone would have answered beside every answer.",
    "stream.horizon": (
        "Ticks for which a query about `next` waits for the fact that marks it in the live score; `auto`: three of "
        "four times when something of a kind happened again, it took no longer. No prediction depends on it."
    ),
    "stream.web_host": "Address of the web pages.",
    "stream.web_port": "Port of the web pages; 0 is none.",
    "stream.web_names": "Other names under which the pages may be asked for.",
    "stream.web_token": "Whoever knows it may promote, roll back and retry from the page; nobody while it is empty.",
    "stream.session_seconds": "Seconds without a sign of life after which a worker's graphs go to others; 6 to 60.",
}
VARIABLES = {
    "ADATKG_CHROMIUM": "The Chromium that the tests of the dashboard use, instead of the one on the path.",
    "ADATKG_CONFIG": "A TOML file that holds for every command; `--config` comes on top of it.",
    "ADATKG_BOOTSTRAP": "`host:port` of the brokers, several separated by commas; 127.0.0.1:9092 if not set.",
    "ADATKG_CACHE": "Folder for what can be had again: vectors of names, Kafka's jars, archives, unfinished training.",
    "ADATKG_JAVA": "The Java that `adatkg broker` runs, instead of the one it finds.",
    "ADATKG_KAFKA_PASSWORD": "Password for SASL, if no `password_file` is given.",
    "ADATKG_LOG": "How much is logged: `debug`, `info`, `warning` or `error`; `info` if not set.",
    "ADATKG_TOPIC_PREFIX": "Prefix of the topics; `adatkg` if not set.",
}
INTERNAL = {"ADATKG_STARTED_AGAIN", "ADATKG_SECTION_KEY"}  # no variable that a user sets
