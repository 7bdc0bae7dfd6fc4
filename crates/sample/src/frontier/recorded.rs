//! A sampling rule that notes the rows of the edges it chooses.

use crate::Scratch;
use crate::neighbors::Choose;
use crate::view::View;

/// The chooser `C`, and the rows of all edges that it chose.
pub struct Recorded<'a, C> {
    pub chooser: C,
    pub rows: &'a mut Vec<u64>,
}

impl<C: Choose> Choose for Recorded<'_, C> {
    const REPLACES: bool = C::REPLACES;

    fn announce(&self, view: View<'_>, list: (usize, u32)) {
        self.chooser.announce(view, list);
    }

    #[inline(always)]
    fn count(&self, view: View<'_>, node: u32, degree: u32, fanout: u32) -> u32 {
        self.chooser.count(view, node, degree, fanout)
    }

    #[inline(always)]
    fn choose(
        &mut self,
        view: View<'_>,
        node: u32,
        list: (usize, u32),
        scratch: &mut Scratch,
        out: &mut [u32],
    ) {
        self.chooser.choose(view, node, list, scratch, out);
        // They are read once all lists of the group are chosen from.
        if let Some(rows) = view.edge {
            out.iter().for_each(|&at| rows.prefetch(list.0 + at as usize));
        }
    }

    #[inline(always)]
    fn chosen(&mut self, view: View<'_>, node: u32, list: (usize, u32), positions: &[u32]) {
        self.chooser.chosen(view, node, list, positions);
        self.rows.extend(positions.iter().map(|&at| view.row(list.0 + at as usize)));
    }
}
