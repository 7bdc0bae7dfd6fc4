//! Tables and arrays that are not what the command takes them for.

use super::case::{check, floats, gzip, integers, npy, utf16};

/// Edges over the nodes of `NODES`.
const EDGES: (&str, &[u8]) = ("e.csv", b"src,dst\na,b\nb,c\n");
const NODES: (&str, &[u8]) = ("n.csv", b"id,label,x0,x1\na,0,1,2\nb,1,3,4\nc,0,5,6\n");
const BOTH: &str = "import csv --edges e.csv --nodes n.csv --out OUT";

#[test]
fn a_header_is_never_an_edge() {
    check(&[
        (
            "1: a header from,to over integers",
            &[("e.csv", b"from,to\n0,1\n1,2\n")],
            "import csv --edges e.csv --out OUT",
            1,
            &[
                "e.csv: no columns 'src' and 'dst'",
                "from, to",
                "--src from --dst to",
                "--header false",
            ],
        ),
        (
            "1: a header source,target over strings",
            &[("e.csv", b"source,target\nann,bob\nbob,cid\n")],
            "import csv --edges e.csv --out OUT",
            1,
            &["--src source --dst target", "--header false"],
        ),
        (
            "1: a header in capitals",
            &[("e.csv", b"Src,Dst\nann,bob\n")],
            "import csv --edges e.csv --out OUT",
            1,
            &["--src Src --dst Dst"],
        ),
        (
            "1: words that are names among others, met again",
            &[("e.csv", b"head,tail\nhead,hand\nhand,arm\n")],
            "import csv --edges e.csv --out OUT",
            0,
            &["no header", "first edge head → tail", "\"nodes\":4"],
        ),
        (
            "2: a typo in --src",
            &[("e.csv", b"src,dst\n0,1\n")],
            "import csv --edges e.csv --src source --out OUT",
            1,
            &["e.csv: no column 'source'", "it has: src, dst"],
        ),
        (
            "2: names asked for of a table without header",
            &[("e.csv", b"0,1\n1,2\n")],
            "import csv --edges e.csv --src source --dst target --out OUT",
            1,
            &["no column 'source'", "taken for a header", "--header false"],
        ),
        (
            "3: the same with a table of nodes",
            &[("e.csv", b"source,target\na,b\n"), NODES],
            BOTH,
            1,
            &["e.csv: no columns 'src' and 'dst'", "--src source --dst target"],
        ),
        (
            "4: the same, stated",
            &[("e.csv", b"src,dst\n0,1\n")],
            "import csv --edges e.csv --src source --header true --out OUT",
            1,
            &["no column 'source'", "it has: src, dst"],
        ),
        (
            "the cure",
            &[("e.csv", b"from,to,weight\na,b,1\nb,c,2\n")],
            "import csv --edges e.csv --src from --dst to --out OUT",
            0,
            &[
                "e.csv: columns from → source, to → destination, weight → weight; delimiter ','; header",
                "strings as ids; first edge a → b",
                r#""tables":[{"#,
                r#"{"name":"from","role":"source","count":1}"#,
            ],
        ),
        (
            "the other cure",
            &[("e.csv", b"from,to\n0,1\n1,2\n")],
            "import csv --edges e.csv --ids string --header false --out OUT",
            0,
            &["first edge from → to", "\"nodes\":5"],
        ),
        (
            "12: no header, integers and strings",
            &[("e.csv", b"0,1\n1,2\n"), ("s.csv", b"ann,bob\nbob,cid\n")],
            "import csv --edges s.csv --out OUT",
            0,
            &["0 → source, 1 → destination", "no header", "first edge ann → bob"],
        ),
        (
            "columns by position in a table without header",
            &[("e.csv", b"9,0,1\n9,1,2\n")],
            "import csv --edges e.csv --src 1 --dst 2 --out OUT",
            0,
            &["1 → source, 2 → destination; not used: 0", "\"nodes\":3"],
        ),
        (
            "nodes without a column 'id'",
            &[EDGES, ("n.csv", b"nodeId,label\na,0\nb,1\nc,0\n")],
            BOTH,
            1,
            &["n.csv: no column 'id'", "it has: nodeId, label", "--id nodeId"],
        ),
    ]);
}

#[test]
fn encodings_compression_and_delimiters_are_recognized() {
    let (wide, zipped) = (utf16("src,dst\na,b\n"), gzip("src,dst\n0,1\n1,2\n"));
    let nodes = utf16("id,label\na,0\n");
    check(&[
        (
            "5: a byte order mark in edges",
            &[("e.csv", b"\xef\xbb\xbfsrc,dst\na,b\nb,c\n"), NODES],
            BOTH,
            0,
            &["\"nodes\":3", "\"edges\":2"],
        ),
        (
            "5: and without a table of nodes or a header",
            &[("e.csv", b"\xef\xbb\xbf0,1\n1,2\n")],
            "import csv --edges e.csv --out OUT",
            0,
            &["\"nodes\":3", "integers as ids"],
        ),
        (
            "6: a byte order mark in nodes",
            &[EDGES, ("n.csv", b"\xef\xbb\xbfid,x0\na,1\nb,2\nc,3\n")],
            "import csv --edges e.csv --nodes n.csv --features x* --out OUT",
            0,
            &["id → id, x0 → feature"],
        ),
        (
            "a byte order mark in triples",
            &[("t.txt", b"\xef\xbb\xbfa\tr\tb\nb\tr\ta\n")],
            "import triples --train t.txt --out OUT",
            0,
            &["\"nodes\":2", "0 → head, 1 → relation, 2 → tail; delimiter tabs", "a → r → b"],
        ),
        (
            "7: UTF-16 in edges",
            &[("e.csv", &wide)],
            "import csv --edges e.csv --out OUT",
            1,
            &["e.csv: is text in UTF-16", "iconv -f UTF-16 -t UTF-8"],
        ),
        ("7: UTF-16 in nodes", &[EDGES, ("n.csv", &nodes)], BOTH, 1, &["n.csv: is text in UTF-16"]),
        (
            "8: lines that end in CR and LF",
            &[("e.csv", b"src,dst\r\na,b\r\nb,c\r\n"), NODES],
            BOTH,
            0,
            &["\"nodes\":3"],
        ),
        (
            "9: gzip under its name",
            &[("e.csv.gz", &zipped)],
            "import csv --edges e.csv.gz --out OUT",
            0,
            &["\"edges\":2"],
        ),
        (
            "9: gzip under another name",
            &[("e.csv", &zipped)],
            "import csv --edges e.csv --out OUT",
            0,
            &["\"edges\":2"],
        ),
        (
            "9: no gzip under its name",
            &[("e.csv.gz", b"src,dst\n0,1\n")],
            "import csv --edges e.csv.gz --out OUT",
            0,
            &["\"edges\":1"],
        ),
        (
            "9: gzip cut short",
            &[("e.csv.gz", &zipped[..zipped.len() - 12])],
            "import csv --edges e.csv.gz --out OUT",
            1,
            &["e.csv.gz"],
        ),
        (
            "10: quoted commas and quotes",
            &[("e.csv", b"src,dst\n\"Lee, Ann\",\"a \"\"b\"\"\"\n")],
            "import csv --edges e.csv --out OUT",
            0,
            &["first edge Lee, Ann → a \"b\""],
        ),
        (
            "11: tabs in csv",
            &[("e.csv", b"src\tdst\n0\t1\n")],
            "import csv --edges e.csv --out OUT",
            1,
            &["e.csv: fields are separated by tabs, not by ','", "tsv", "--delimiter tab"],
        ),
        (
            "11: semicolons in csv, without header",
            &[("e.csv", b"0;1\n1;2\n")],
            "import csv --edges e.csv --out OUT",
            1,
            &["separated by ';', not by ','", "--delimiter ';'"],
        ),
        (
            "11: blanks in csv",
            &[("e.csv", b"0 1\n1 2\n")],
            "import csv --edges e.csv --out OUT",
            1,
            &["separated by blanks", "--delimiter space"],
        ),
        (
            "11: commas in tsv",
            &[("e.tsv", b"src,dst\n0,1\n")],
            "import tsv --edges e.tsv --out OUT",
            1,
            &["separated by ',', not by tabs", "csv"],
        ),
        (
            "11: the cures",
            &[("e.csv", b"0 1\n1 2\n")],
            "import csv --edges e.csv --delimiter space --out OUT",
            0,
            &["delimiter blanks", "\"nodes\":3"],
        ),
        (
            "11: a tab by its name",
            &[("e.csv", b"0\t1\n1\t2\n")],
            "import csv --edges e.csv --delimiter tab --out OUT",
            0,
            &["delimiter tabs"],
        ),
        (
            "a delimiter of several bytes",
            &[("e.csv", b"0,1\n")],
            "import csv --edges e.csv --delimiter §§ --out OUT",
            2,
            &["--delimiter", "one ASCII character", "'tab'"],
        ),
        (
            "13: comments",
            &[("e.tsv", b"# Nodes: 3\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n")],
            "import tsv --edges e.tsv --out OUT",
            0,
            &["\"nodes\":3", "\"edges\":2"],
        ),
        (
            "14: a wrong path",
            &[EDGES],
            "import csv --edges edge.csv --out OUT",
            1,
            &["edge.csv: No such file", "looked for /", "e.csv"],
        ),
        (
            "45: no dataset there",
            &[],
            "inspect data/acm",
            1,
            &["data/acm (/", "no dataset.json here"],
        ),
    ]);
}

#[test]
fn a_column_has_one_role() {
    let features = |features: &str| format!("{BOTH} --features {features}");
    let all = features("*");
    let [label, twice, overlap] = ["x0,label", "x0,x0", "x*,x1*"].map(features);
    check(&[
        (
            "16: all columns as features",
            &[EDGES, NODES],
            &all,
            0,
            &["id → id, label → label, x0 … x1 → 2 features"],
        ),
        (
            "16: the label as a feature",
            &[EDGES, NODES],
            &label,
            2,
            &["'label'", "label and as feature"],
        ),
        ("16: a feature twice", &[EDGES, NODES], &twice, 2, &["n.csv: column 'x0' is taken twice"]),
        (
            "16: patterns that overlap",
            &[EDGES, NODES],
            &overlap,
            2,
            &["'x1*' leaves no column", "taken already: x1"],
        ),
        (
            "16: a name beside a pattern",
            &[EDGES, NODES],
            &features("x0,x*"),
            0,
            &["x0 … x1 → 2 features"],
        ),
        (
            "a transform beside a pattern",
            &[EDGES, NODES],
            &format!("{all} --standardize x1"),
            0,
            &["id → id, label → label, x0 … x1 → 2 features", r#""role":"features","count":2"#],
        ),
        (
            "a transform beside a pattern that matches nothing else",
            &[EDGES, NODES],
            &format!("{BOTH} --features x1* --min-max x1"),
            0,
            &["x1 → feature; not used: x0"],
        ),
        (
            "patterns with two transforms",
            &[EDGES, NODES],
            &format!("{BOTH} --standardize x* --min-max x1"),
            2,
            &["n.csv: column 'x1' has two transforms"],
        ),
        (
            "the label as a category",
            &[EDGES, NODES],
            &format!("{BOTH} --categorical label"),
            2,
            &["column 'label' is taken as label and as feature"],
        ),
        (
            "a transform twice",
            &[EDGES, NODES],
            &format!("{BOTH} --standardize x0,x0"),
            2,
            &["column 'x0' is taken twice as feature"],
        ),
        (
            "one column as both ends",
            &[("e.csv", b"a,b\n0,1\n")],
            "import csv --edges e.csv --src a --dst a --out OUT",
            2,
            &["column 'a' is taken as source and as destination"],
        ),
        (
            "patterns of edge features leave out what has a role",
            &[("e.csv", b"src,dst,weight,w2,w3\n0,1,1,5,6\n")],
            "import csv --edges e.csv --edge-features w* --out OUT",
            0,
            &["weight → weight, w2 … w3 → 2 features"],
        ),
        (
            "the index that pandas writes is no feature",
            &[EDGES, ("n.csv", b",id,x0\n0,a,1\n1,b,2\n2,c,3\n")],
            &all,
            0,
            &["id → id, x0 → feature"],
        ),
    ]);
}

#[test]
fn bad_values_are_named_with_their_place() {
    let edges = integers("(2, 3)", &[0, 1, 3, 1, 2, 0]);
    let few = floats("(3, 1)", &[1.0, 2.0, 3.0]);
    let mask = integers("(4,)", &[1, 0, 1, 0]);
    let pairs = integers("(3, 2)", &[0, 1, 1, 2, 2, 0]);
    let fractions = floats("(2, 2)", &[0.0, 1.0, 1.0, 2.0]);
    let objects = npy("|O", "(2, 2)", &[0; 32]);
    let large = npy("<u8", "(2, 1)", &[[0xff; 8], [0; 8]].concat());
    check(&[
        (
            "15: a typo in a feature",
            &[EDGES, NODES],
            &format!("{BOTH} --features x3"),
            1,
            &["no column 'x3'", "id, label, x0, x1"],
        ),
        (
            "17: text in a feature",
            &[EDGES, ("n.csv", b"id,x1\na,1\nb,hello\nc,2\n")],
            &format!("{BOTH} --features x1"),
            1,
            &["n.csv: line 3: column 'x1': 'hello' is not a number"],
        ),
        (
            "20: labels of two kinds",
            &[EDGES, ("n.csv", b"id,label\na,3\nb,cat\nc,1\n")],
            BOTH,
            1,
            &["n.csv: line 3", "'cat' is not a number", "the first row has '3'"],
        ),
        (
            "22: negative ids in text are renumbered, told",
            &[("e.csv", b"-1,2\n2,3\n")],
            "import csv --edges e.csv --out OUT",
            0,
            &["renumbered", "first edge -1 → 2"],
        ),
        (
            "22: ids over 63 bits are not called negative",
            &[("e.npy", &large)],
            "import npy --edges e.npy --out OUT",
            1,
            &["e.npy: row 0: source id 18446744073709551615 is over 63 bits"],
        ),
        (
            "23: an empty file",
            &[("e.csv", b"")],
            "import csv --edges e.csv --out OUT",
            1,
            &["e.csv: the table is empty"],
        ),
        (
            "23: a header alone",
            &[("e.csv", b"src,dst\n")],
            "import csv --edges e.csv --out OUT",
            1,
            &["the graph is empty: no edge"],
        ),
        (
            "24: an id twice",
            &[EDGES, ("n.csv", b"id\na\nb\na\nc\n")],
            BOTH,
            1,
            &["n.csv: line 4: id 'a' appears twice"],
        ),
        (
            "24: an unknown node",
            &[("e.csv", b"src,dst\na,zz\n"), NODES],
            BOTH,
            1,
            &["e.csv: line 2", "no id 'zz'"],
        ),
        (
            "25: a short row",
            &[EDGES, ("n.csv", b"id,label,x\na,0\n")],
            BOTH,
            1,
            &["n.csv: line 2: 2 fields, there are 3 columns"],
        ),
        (
            "26: integers in nodes, text in edges",
            &[EDGES, ("n.csv", b"id,label\n0,1\n1,0\n2,1\n")],
            BOTH,
            1,
            &[
                "e.csv: column 'src' has ids that are no integers",
                "those of n.csv are, the first is 0",
            ],
        ),
        (
            "26: nodes numbered by row, text in edges",
            &[EDGES, ("n.csv", b"title,label\nx,1\ny,0\nz,1\n")],
            BOTH,
            1,
            &["n.csv has no column of ids", "--id"],
        ),
        (
            "27: missing and negative weights",
            &[("e.csv", b"src,dst,weight\n0,1,1\n1,2,\n2,0,-1\n")],
            "import csv --edges e.csv --out OUT",
            1,
            &[
                "e.csv: line 3: column 'weight': the value is missing",
                "line 4: the -1 is refused too",
            ],
        ),
        (
            "27: a negative weight",
            &[("e.csv", b"src,dst,weight\n0,1,-2\n")],
            "import csv --edges e.csv --out OUT",
            1,
            &["e.csv: line 2: column 'weight': the weight -2 is negative"],
        ),
        (
            "28: edges of two columns",
            &[("e.npy", &pairs)],
            "import npy --edges e.npy --out OUT",
            1,
            &["transpose it"],
        ),
        (
            "28: edges with fractions",
            &[("e.npy", &fractions)],
            "import npy --edges e.npy --out OUT",
            1,
            &["astype(numpy.int64)"],
        ),
        (
            "28: edges of objects",
            &[("e.npy", &objects)],
            "import npy --edges e.npy --out OUT",
            1,
            &["e.npy: unsupported dtype"],
        ),
        (
            "29: features of fewer rows than nodes",
            &[("e.npy", &edges), ("x.npy", &few)],
            "import npy --edges e.npy --features x.npy --out OUT",
            1,
            &["e.npy: row 2: source id 3", "the number of rows of x.npy is 3"],
        ),
        (
            "30: a mask of integers",
            &[("e.npy", &edges), ("m.npy", &mask)],
            "import npy --edges e.npy --split train=m.npy --out OUT",
            1,
            &["m.npy: 4 numbers 0 and 1 for 4 nodes", "mask.astype(bool)"],
        ),
    ]);
}

/// R2: one id of 160 bytes decided how much memory is taken, whatever `--memory` said.
#[test]
fn one_large_id_is_no_memory_bomb() {
    let bomb = |id: i64| integers("(2, 2)", &[0, 1, 1, id]);
    let [large, larger, largest] = [400_000_000, 1 << 40, i64::MAX - 1].map(bomb);
    let import = "import npy --edges b.npy --memory 64MiB --out OUT";
    let text: &[u8] = b"0,1\n1,2\n";
    let (triples, typed) = (integers("(1, 3)", &[0, 0, 1 << 50]), "b.npy: row 1: destination id");
    check(&[
        (
            "4e8",
            &[("b.npy", &large)],
            import,
            1,
            &["b.npy: row 1: destination id 400000000", "--memory allows 64 MiB", "--num-nodes"],
        ),
        ("2^40", &[("b.npy", &larger)], import, 1, &["destination id 1099511627776"]),
        ("2^63 - 2", &[("b.npy", &largest)], import, 1, &["destination id 9223372036854775806"]),
        (
            "with types",
            &[("b.npy", &largest)],
            "import npy --edges a:to:b=b.npy --memory 64MiB --out OUT",
            1,
            &[typed],
        ),
        (
            "triples",
            &[("t.npy", &triples)],
            "import npy --triples e=t.npy --memory 64MiB --out OUT",
            1,
            &["t.npy: row 0: tail id 1125899906842624"],
        ),
        (
            "stated of arrays",
            &[("b.npy", &large)],
            "import npy --edges b.npy --num-nodes 400000001 --memory 64MiB --out OUT",
            1,
            &["--num-nodes: degrees of 400000001 nodes"],
        ),
        (
            "stated of tables",
            &[("e.csv", text)],
            "import csv --edges e.csv --num-nodes 9000000000000000000 --out OUT",
            1,
            &["--num-nodes"],
        ),
        (
            "stated of entities",
            &[("t.txt", b"0\t0\t1\n")],
            "import triples --train t.txt --num-entities 4000000000000 --out OUT",
            1,
            &["--num-entities"],
        ),
        (
            "ids of tables are renumbered",
            &[("e.csv", b"0,1\n1,9223372036854775806\n")],
            "import csv --edges e.csv --out OUT",
            0,
            &["\"nodes\":3", "renumbered"],
        ),
    ]);
}

#[test]
fn names_of_integers_in_triples() {
    let triples: (&str, &[u8]) = ("t.txt", b"0\t2\t1\n2\t0\t0\n");
    let relations: (&str, &[u8]) = ("relations.txt", b"likes\nhates\nknows\n");
    let entities: (&str, &[u8]) = ("entities.txt", b"ann\nbob\ncid\ndora\n");
    check(&[
        (
            "files of names beside are mentioned",
            &[triples, relations, entities],
            "import triples --train t.txt --out OUT",
            0,
            &["relations.txt is not used", "--relations", "entities.txt is not used"],
        ),
        (
            "names are taken",
            &[triples, relations, entities],
            "import triples --train t.txt --relations relations.txt --entities entities.txt --out OUT",
            0,
            &["\"nodes\":4", "\"isolated\":1"],
        ),
        (
            "a relation without name",
            &[("t.txt", b"0\t3\t1\n"), relations],
            "import triples --train t.txt --relations relations.txt --out OUT",
            1,
            &["t.txt: line 1: relation 3 has no name", "names 3"],
        ),
        (
            "an entity without name",
            &[("t.txt", b"0\t0\t4\n"), entities],
            "import triples --train t.txt --entities entities.txt --out OUT",
            1,
            &["t.txt: line 1: id 4 is not below the number of entity nodes, 4"],
        ),
        (
            "names of names",
            &[("t.txt", b"a\tr\tb\n"), relations],
            "import triples --train t.txt --relations relations.txt --out OUT",
            2,
            &["relations of t.txt are names already"],
        ),
        (
            "a name twice",
            &[triples, ("r.txt", b"likes\nhates\nlikes\n")],
            "import triples --train t.txt --relations r.txt --out OUT",
            1,
            &["r.txt: line 3: the name 'likes' is in line 1 too"],
        ),
        (
            "a dictionary instead of names",
            &[triples, ("r.txt", b"0\tlikes\n1\thates\n")],
            "import triples --train t.txt --relations r.txt --out OUT",
            1,
            &["r.txt: line 1: several columns", "cut -f2"],
        ),
    ]);
}
