//! Volumes of sandboxes that are gone. A volume goes with its container; a daemon that was killed
//! meanwhile forgets the container and keeps the volume.

use std::collections::HashMap;

use bollard::query_parameters::ListVolumesOptionsBuilder;

use super::Docker;
use crate::engine::error::EngineError;
use crate::engine::label::Labels;
use crate::engine::traits::LeftOver;

impl Docker {
    /// Removes our volumes that no container uses and that are left over by their labels; how many.
    pub(super) async fn remove_volumes(&self, left: LeftOver<'_>) -> Result<usize, EngineError> {
        let filters = HashMap::from([
            ("label", vec![Labels::key("call")]),
            ("dangling", vec!["true".to_owned()]),
        ]);
        let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
        let failed = |error| EngineError::from_client("list volumes", error);
        let listed = self.client.list_volumes(Some(options)).await.map_err(failed)?;
        let mut removed = 0;
        for volume in listed.volumes.unwrap_or_default() {
            if !left(&Labels::ours(volume.labels)) {
                continue;
            }
            let none = None::<bollard::query_parameters::RemoveVolumeOptions>;
            match self.client.remove_volume(&volume.name, none).await {
                Ok(()) => removed += 1,
                Err(error) => match EngineError::from_client("remove a volume", error) {
                    // It is gone, or a container uses it after all.
                    EngineError::Refused { status: 404 | 409, .. } => {}
                    error => return Err(error),
                },
            }
        }
        Ok(removed)
    }
}
