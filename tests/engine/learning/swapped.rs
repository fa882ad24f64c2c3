//! A folder that is swapped with a link while a call waits for its answer. The access of the call is asked for again after the
//! answer, for rules that concern it; what it is then was not judged.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use tiller_config::schema::LearningsSetting;
use tiller_permit::{Effect, Rule, Source};
use tiller_protocol::{AskReply, Decision};

use super::Bench;
use crate::rig::*;
use crate::turns::questions::permission;

const CANARY: &str = "canary-7f3a";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x20_an_approved_call_reads_what_was_approved() {
    for swapped in [false, true] {
        let bench = Bench::new(false);
        bench.memory("- 2026-11-01: Be kind. [when: read_file \"d/*\"]\n");
        let (work, out) = (bench.place.work.clone(), bench.place.work.with_file_name("out"));
        for (folder, text) in [(work.join("d"), "mine-51c2\n"), (out.clone(), CANARY)] {
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("f"), text).unwrap();
        }
        let fake = Fake::new([calls(&[("c1", "read_file", read_args("d/f"))]), says("Done.")]);
        let change = |p: &mut tiller_engine::EngineConfig| {
            drop(bench.learns(p, LearningsSetting::Never));
            let catalog = p.tools.catalog();
            let rule = Rule::parse(Effect::Ask, Source::User, "read_file(d/f)", &catalog).unwrap();
            p.permit = p.permit.clone().live(Arc::new(move || Some((Some(vec![rule.clone()]), Vec::new()))));
            let _ = p.permit.refresh();
        };
        let mut rig = bench.place.start_with(&fake, change).await;
        rig.submit("read it");
        let ask = rig.asked().await;
        if swapped {
            std::fs::rename(work.join("d"), work.join("e")).unwrap();
            symlink(&out, work.join("d")).unwrap();
        }
        let hash = permission(&ask).hash;
        rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash });
        let (_, output) = rig.tool_finished().await;
        assert!(!output.contains(CANARY), "{output}");
        assert_eq!(output.contains("mine-51c2"), !swapped, "{output}");
        assert_eq!(output.contains("is no longer the file that was approved"), swapped, "{output}");
        rig.quit().await;
    }
}
