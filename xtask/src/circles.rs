//! Import circles: files of a crate that import each other in a loop.
//!
//! An arrow runs from the file that names an item to the file that defines it, whatever modules hand the name
//! on in between; methods and macros draw none. Test modules are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::Visit;
use syn::{Attribute, Item, ItemMod, UseTree, Visibility};

/// Prints the circles of every crate under `crates`.
///
/// # Errors
/// There is one, or a file cannot be parsed.
pub fn run(repository: &Path) -> Result<()> {
    let mut circles = 0;
    let mut crates: Vec<PathBuf> = std::fs::read_dir(repository.join("crates"))?
        .map(|entry| Ok(entry?.path().join("src")))
        .collect::<Result<_>>()?;
    crates.sort();
    for source in crates {
        let modules = Modules::read(&source)?;
        for circle in modules.circles() {
            circles += 1;
            println!("circle of {} files in {}:", circle.len(), source.display());
            for (from, to, names) in modules.arrows_within(&circle) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                println!("  {} -> {}: {}", modules.name(from), modules.name(to), names.join(", "));
            }
        }
    }
    if circles > 0 {
        bail!("{circles} import circles; move what both sides need into a file below them");
    }
    println!("no import circles");
    Ok(())
}

/// A path of modules below the crate's root.
type Place = Vec<String>;

/// The modules of a crate: one per file and one per inline module.
struct Modules {
    root: PathBuf,
    files: Vec<PathBuf>,
    modules: BTreeMap<Place, Module>,
    /// Names used, by the file that uses and the file that defines.
    arrows: BTreeMap<(usize, usize), BTreeSet<String>>,
}

#[derive(Default)]
struct Module {
    file: usize,
    /// Items defined here.
    defined: BTreeSet<String>,
    /// Names brought into scope, and the paths that they stand for.
    imported: BTreeMap<String, Place>,
    /// Modules whose names are all in scope.
    globs: Vec<Place>,
    /// Paths that expressions, types and patterns name.
    used: BTreeSet<Place>,
}

impl Modules {
    fn read(source: &Path) -> Result<Self> {
        let mut modules = Self {
            root: source.to_path_buf(),
            files: Vec::new(),
            modules: BTreeMap::new(),
            arrows: BTreeMap::new(),
        };
        let root = ["lib.rs", "main.rs"].map(|name| source.join(name));
        let root = root.into_iter().find(|file| file.exists());
        let root = root.with_context(|| format!("{}: no lib.rs or main.rs", source.display()))?;
        modules.file(&root, source, Vec::new())?;
        modules.draw();
        Ok(modules)
    }

    fn file(&mut self, file: &Path, folder: &Path, place: Place) -> Result<()> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        self.files.push(file.to_path_buf());
        let number = self.files.len() - 1;
        self.items(&parsed.items, number, folder, place)
    }

    fn items(&mut self, items: &[Item], file: usize, folder: &Path, place: Place) -> Result<()> {
        let mut module = Module { file, ..Module::default() };
        for item in items {
            match item {
                Item::Mod(inner) if is_test(&inner.attrs) => {}
                Item::Mod(inner) => self.module(inner, file, folder, &place)?,
                Item::Use(item) => {
                    let handed_on = !matches!(item.vis, Visibility::Inherited);
                    module.import(&item.tree, &mut Vec::new(), handed_on);
                }
                other => {
                    module.defined.extend(name(other));
                    Paths { used: &mut module.used }.visit_item(other);
                }
            }
        }
        self.modules.insert(place, module);
        Ok(())
    }

    fn module(&mut self, item: &ItemMod, file: usize, folder: &Path, place: &Place) -> Result<()> {
        let name = item.ident.to_string();
        let mut inner = place.clone();
        inner.push(name.clone());
        let below = folder.join(&name);
        if let Some((_, items)) = &item.content {
            return self.items(items, file, &below, inner);
        }
        let beside = folder.join(format!("{name}.rs"));
        let path = if beside.exists() { beside } else { below.join("mod.rs") };
        self.file(&path, &below, inner)
    }

    fn draw(&mut self) {
        for (place, module) in &self.modules {
            // Names that are only handed on draw no arrow: whoever uses them does.
            for path in &module.used {
                let Some((file, name)) = self.resolve(place, path, 0) else { continue };
                if file != module.file {
                    self.arrows.entry((module.file, file)).or_default().insert(name);
                }
            }
        }
    }

    /// The file that defines the longest part of `path` that is an item of this crate.
    fn resolve(&self, place: &Place, path: &[String], depth: usize) -> Option<(usize, String)> {
        if depth > 16 {
            return None;
        }
        let mut at = place.clone();
        let mut rest = path;
        while let Some(first) = rest.first() {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                _ => break,
            }
            rest = &rest[1..];
        }
        let (first, after) = rest.split_first()?;
        let module = self.modules.get(&at)?;
        if module.defined.contains(first) {
            return Some((module.file, first.clone()));
        }
        let mut child = at.clone();
        child.push(first.clone());
        if self.modules.contains_key(&child) {
            let mut path = vec!["self".to_string()];
            path.extend_from_slice(after);
            return self.resolve(&child, &path, depth + 1);
        }
        if let Some(target) = module.imported.get(first) {
            let mut path = target.clone();
            path.extend_from_slice(after);
            // A crate's name, or an import of itself.
            if target.first() == Some(first) && !self.modules.contains_key(&target[..1]) {
                return None;
            }
            return self.resolve(&at, &path, depth + 1);
        }
        module.globs.iter().find_map(|glob| {
            let mut path = glob.clone();
            path.extend_from_slice(rest);
            self.resolve(&at, &path, depth + 1)
        })
    }

    fn circles(&self) -> Vec<Vec<usize>> {
        let graph: DiGraphMap<usize, ()> = self.arrows.keys().map(|&(a, b)| (a, b, ())).collect();
        let mut circles = tarjan_scc(&graph);
        circles.retain(|circle| circle.len() > 1);
        circles.iter_mut().for_each(|circle| circle.sort_unstable());
        circles
    }

    fn arrows_within(&self, circle: &[usize]) -> Vec<(usize, usize, &BTreeSet<String>)> {
        let inside = |file: &usize| circle.contains(file);
        self.arrows
            .iter()
            .filter(|((from, to), _)| inside(from) && inside(to))
            .map(|(&(from, to), names)| (from, to, names))
            .collect()
    }

    fn name(&self, file: usize) -> String {
        let file = &self.files[file];
        file.strip_prefix(&self.root).unwrap_or(file).display().to_string()
    }
}

impl Module {
    fn import(&mut self, tree: &UseTree, path: &mut Place, handed_on: bool) {
        match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.import(&tree.tree, path, handed_on);
                path.pop();
            }
            UseTree::Name(tree) => self.name(tree.ident.to_string(), path, None, handed_on),
            UseTree::Rename(tree) => {
                self.name(tree.ident.to_string(), path, Some(tree.rename.to_string()), handed_on);
            }
            UseTree::Glob(_) => self.globs.push(path.clone()),
            UseTree::Group(tree) => {
                for tree in &tree.items {
                    self.import(tree, path, handed_on);
                }
            }
        }
    }

    fn name(&mut self, name: String, path: &Place, rename: Option<String>, handed_on: bool) {
        let mut target = path.clone();
        if name != "self" {
            target.push(name);
        }
        let Some(last) = target.last() else { return };
        let known_as = rename.unwrap_or_else(|| last.clone());
        // A private import is there to be used, also where only a macro or a method needs it.
        if !handed_on {
            self.used.insert(target.clone());
        }
        self.imported.insert(known_as, target);
    }
}

/// Collects the paths that an item names.
struct Paths<'a> {
    used: &'a mut BTreeSet<Place>,
}

impl<'a> Visit<'a> for Paths<'_> {
    fn visit_path(&mut self, path: &'a syn::Path) {
        let parts: Place = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.used.insert(parts);
        syn::visit::visit_path(self, path);
    }
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(ident.to_string())
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}
