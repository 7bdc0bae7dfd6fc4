//! Schema files list tables of several types; columns become features by their transforms.

use crate::common::{Files, sorted_edges};
use gnarl_graph::import::{TableOptions, tables};
use gnarl_graph::times::node_times;
use gnarl_graph::{Features, Labels, Triple};

const SCHEMA: &str = r#"{
  "nodes": [
    {
      "node_type": "paper", "files": ["papers.csv"], "node_id_col": "id",
      "format": { "name": "csv", "separator": ";" },
      "features": [
        { "feature_col": "x*" },
        { "feature_col": "year", "transform": { "name": "standard" } },
        { "feature_col": "pages", "transform": { "name": "max_min_norm" } },
        { "feature_col": "language", "transform": { "name": "to_categorical" } }
      ],
      "labels": [{ "label_col": "topic", "task_type": "classification", "split_pct": [0.5, 0.25, 0.25] }]
    },
    { "node_type": "author", "files": "authors.csv", "node_id_col": "name" }
  ],
  "edges": [
    {
      "relation": ["author", "writes", "paper"], "files": "writes.csv",
      "source_id_col": "author", "dest_id_col": "paper"
    }
  ]
}"#;

fn files() -> Files {
    let files = Files::new();
    files.text(
        "papers.csv",
        "id;x0;x1;year;pages;language;topic\np1;1;2;2000;5;en;0\np2;3;4;2004;9;de;1\n\
         p3;5;6;2002;7;en;\np4;7;8;2002;5;fr;1\np5;0;0;2002;6;en;0\n",
    );
    files.text("authors.csv", "name\nann\nbob\n");
    files.text("writes.csv", "author;paper\nann;p1\nbob;p4\nbob;p5\n");
    files
}

#[test]
fn columns_become_features_by_their_transforms() {
    let files = files();
    let options = TableOptions::from_schema(&files.text("graph.json", SCHEMA)).unwrap();
    let dataset = tables(&options, &files.out()).unwrap().dataset;
    let triple: Triple = "author:writes:paper".parse().unwrap();
    assert_eq!(sorted_edges(&dataset, &triple), [(0, 0), (1, 3), (1, 4)]);
    let Some(Features::Dense(rows)) = dataset.features("paper").unwrap() else {
        panic!("features of papers")
    };
    let rows = rows.values::<f32>().unwrap();
    // Years have mean 2002 and variance (4 + 4) / 5; languages appear as en, de, fr.
    let year = (8.0f32 / 5.0).sqrt();
    let expected = [
        [1.0, 2.0, -2.0 / year, 0.0, 1.0, 0.0, 0.0],
        [3.0, 4.0, 2.0 / year, 1.0, 0.0, 1.0, 0.0],
        [5.0, 6.0, 0.0, 0.5, 1.0, 0.0, 0.0],
        [7.0, 8.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, 0.25, 1.0, 0.0, 0.0],
    ];
    assert_eq!(rows.len(), 35);
    for (got, expected) in rows.iter().zip(expected.concat()) {
        assert!((got - expected).abs() < 1e-6, "{rows:?}");
    }
    let Some(Labels::Single { classes, count: 2 }) = dataset.labels("paper").unwrap() else {
        panic!("labels of papers")
    };
    assert_eq!(classes[..], [0, 1, -1, 1, 0]);
    let split = |name: &str| dataset.split("paper", name).unwrap().unwrap().to_vec();
    assert_eq!([split("train").len(), split("valid").len(), split("test").len()], [2, 1, 1]);
    let mut all = [split("train"), split("valid"), split("test")].concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 3, 4], "the labelled ones");
}

#[test]
fn what_is_not_known_is_named() {
    let files = files();
    for (from, to, part) in [
        ("standard", "standart", "unknown transform 'standart'"),
        ("\"node_id_col\": \"name\"", "\"node_id\": \"name\"", "unknown field `node_id`"),
        ("classification", "ranking", "task_type 'ranking'"),
        ("[\"papers.csv\"]", "[\"papers.csv\", \"more.csv\"]", "node type 'paper': 2 files"),
        ("\"name\": \"csv\"", "\"name\": \"hdf5\"", "format 'hdf5'"),
    ] {
        let path = files.text("bad.json", &SCHEMA.replace(from, to));
        let message = TableOptions::from_schema(&path).unwrap_err().to_string();
        assert!(message.contains(part) && message.contains("bad.json"), "{message}");
    }
    let refuse = |from: &str, to: &str| {
        let path = files.text("bad.json", &SCHEMA.replace(from, to));
        let options = TableOptions::from_schema(&path).unwrap();
        files.refusal(tables(&options, &files.out()))
    };
    let message = refuse("[0.5, 0.25, 0.25]", "[0.9, 0.25, 0.25]");
    assert!(message.contains("splits of paper"), "{message}");
    let message = refuse("\"year\"", "\"years\"");
    assert!(message.contains("no column 'years'"), "{message}");
    let message = refuse("\"author\", \"writes\"", "\"writer\", \"writes\"");
    assert!(message.contains("unknown node type 'writer'"), "{message}");
}

#[test]
fn tables_name_their_times_weights_and_splits() {
    let files = files();
    files.text("papers.csv", "id,year,part,topic\np1,2000,val,0\np2,2004,train,2\np3,2002,,1\n");
    files.text(
        "cites.csv",
        "from,to,on,much,part\np1,p2,2001-01-01,0.5,train\np3,p1,2002-01-01,2,test\n",
    );
    let schema = r#"{
      "nodes": [{
        "node_type": "paper", "files": "papers.csv", "node_id_col": "id",
        "time_col": "year", "split_col": "part", "num_classes": 5,
        "labels": [{ "label_col": "topic", "task_type": "classification" }]
      }],
      "edges": [{
        "relation": ["paper", "cites", "paper"], "files": "cites.csv",
        "source_id_col": "from", "dest_id_col": "to",
        "weight_col": "much", "time_col": "on", "split_col": "part"
      }]
    }"#;
    let options = TableOptions::from_schema(&files.text("graph.json", schema)).unwrap();
    let dataset = tables(&options, &files.out()).unwrap().dataset;
    let split = |name: &str| dataset.split("paper", name).unwrap().unwrap().to_vec();
    assert_eq!([split("train"), split("valid")], [vec![1], vec![0]]);
    let Some(Labels::Single { count, .. }) = dataset.labels("paper").unwrap() else {
        panic!("labels of papers")
    };
    assert_eq!(count, 5);
    assert_eq!(node_times(&dataset, "paper").unwrap().unwrap()[..], [2000, 2004, 2002]);
    let triple: Triple = "paper:cites:paper".parse().unwrap();
    let columns: Vec<&str> = dataset
        .manifest()
        .edge_type(&triple)
        .unwrap()
        .columns
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    for column in ["weight", "time", "split"] {
        assert!(columns.contains(&column), "{columns:?}");
    }
    let both = schema.replace(
        "\"task_type\": \"classification\"",
        "\"task_type\": \"classification\", \"split_pct\": [0.5, 0.3, 0.2]",
    );
    let message = TableOptions::from_schema(&files.text("both.json", &both)).unwrap_err();
    assert!(message.to_string().contains("split_col 'part' beside split_pct"), "{message}");
}

#[test]
fn types_without_a_table_are_the_ids_that_edges_mention() {
    let files = files();
    let own =
        "{ \"node_type\": \"author\", \"files\": \"authors.csv\", \"node_id_col\": \"name\" }";
    assert!(SCHEMA.contains(own));
    let schema = SCHEMA.replace(own, "{ \"node_type\": \"author\" }");
    files.text("writes.csv", "author;paper\nzoe;p1\nbob;p4\nbob;p5\n");
    let options = TableOptions::from_schema(&files.text("graph.json", &schema)).unwrap();
    let dataset = tables(&options, &files.out()).unwrap().dataset;
    let triple: Triple = "author:writes:paper".parse().unwrap();
    assert_eq!(sorted_edges(&dataset, &triple), [(0, 0), (1, 3), (1, 4)]);

    let message = |schema: &str| {
        let options = TableOptions::from_schema(&files.text("bad.json", schema));
        options.and_then(|options| tables(&options, &files.out())).unwrap_err().to_string()
    };
    let lost = schema.replace("{ \"node_type\": \"author\" }", "{ \"node_type\": \"venue\" }");
    assert!(message(&lost).contains("unknown node type 'author'"));
    let both = "{ \"node_type\": \"author\" }, { \"node_type\": \"venue\" }";
    let lost = schema.replace("{ \"node_type\": \"author\" }", both);
    assert!(message(&lost).contains("node type 'venue' has no table, and no edges"));
    let named = "{ \"node_type\": \"author\", \"node_id_col\": \"name\" }";
    let columns = schema.replace("{ \"node_type\": \"author\" }", named);
    assert!(message(&columns).contains("columns without files"));
}
