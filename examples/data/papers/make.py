"""Makes the tables of this folder: python3 make.py. A synthetic graph of papers, citations and authors."""
import csv
import random

TOPICS = ["graphs", "language", "robotics", "vision"]
PAPERS, AUTHORS, FEATURES = 800, 240, 12

random.seed(7)
centers = [[random.gauss(0, 1) for _ in range(FEATURES)] for _ in TOPICS]
topics = [random.randrange(len(TOPICS)) for _ in range(PAPERS)]
papers = [f"p{100 + 7 * i}" for i in range(PAPERS)]
by_topic = [[i for i in range(PAPERS) if topics[i] == t] for t in range(len(TOPICS))]


def other(topic, kin):
    """A paper, of the same topic with probability kin."""
    return random.choice(by_topic[topic]) if random.random() < kin else random.randrange(PAPERS)


def table(name, header, rows):
    with open(name, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def split():
    return random.choices(["train", "valid", "test", ""], [30, 20, 30, 20])[0]


table(
    "papers.csv",
    ["id", "year", *(f"x{k}" for k in range(FEATURES)), "topic", "split"],
    ([papers[i], random.randrange(2010, 2026)]
     + [round(random.gauss(centers[topics[i]][k], 2.2), 2) for k in range(FEATURES)]
     + [TOPICS[topics[i]], split()] for i in range(PAPERS)),
)
cites = {(i, other(topics[i], 0.8)) for i in range(PAPERS) for _ in range(random.randrange(1, 6))}
table("cites.csv", ["from", "to"], ([papers[i], papers[j]] for i, j in sorted(cites) if i != j))
fields = [random.randrange(len(TOPICS)) for _ in range(AUTHORS)]
writes = {(a, other(fields[a], 0.9)) for a in range(AUTHORS) for _ in range(random.randrange(2, 9))}
table("authors.csv", ["id", "since"], ([f"a{a}", random.randrange(1990, 2024)] for a in range(AUTHORS)))
table("writes.csv", ["from", "to"], ([f"a{a}", papers[i]] for a, i in sorted(writes)))
