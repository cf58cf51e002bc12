//! Random steps of the server, of holders and of the cycle.

use proptest::prelude::*;

use super::*;

/// Step of the server, of a process that has or had a lease, or of the cycle.
#[derive(Clone, Debug)]
enum Step {
    /// Grants the lease to the next holder.
    Grant,
    /// The holder hangs up.
    End,
    /// A holder, current or former, writes this many commands.
    Write(usize, u64),
    /// A holder stores this number as its newest.
    Scribble(usize, u64),
    /// The cycle looks.
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Grant),
        1 => Just(Step::End),
        6 => (any::<prop::sample::Index>(), 1..10_u64).prop_map(|(who, count)| Step::Write(who.index(1 << 20), count)),
        1 => (any::<prop::sample::Index>(), 0..30_u64).prop_map(|(who, number)| Step::Scribble(who.index(1 << 20), number)),
        4 => Just(Step::Look),
    ]
}

impl Bench {
    fn run(&mut self, step: &Step) {
        match *step {
            Step::Grant => assert!(self.grant() || self.holders.len() >= WAITING),
            Step::End => {
                self.mark_end();
                self.leases.end();
            }
            Step::Write(who, count) => self.write(who, count),
            Step::Scribble(who, number) => {
                let Some(index) = who.checked_rem(self.holders.len()) else { return };
                let holder = &mut self.holders[index];
                holder.writer.memory()[0].store(number, Ordering::Relaxed);
                holder.honest = false;
            }
            Step::Look => self.look(),
        }
    }
}

proptest! {
    // feature(ipc): commands of a former lease holder are ignored at any rate; its last command expires
    #[test]
    fn only_the_holder_has_effect(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut bench = Bench::new();
        for step in &steps {
            bench.run(step);
        }
        bench.look();
    }
}
