use actix_web::{App as WebApp, cookie::Cookie, test, web};

#[actix_web::test]
async fn smoke_render_console_c() {
    if !std::path::Path::new("/tmp/console_c_run").exists() {
        return;
    }
    let url = |name: &str| url::Url::parse(&format!("http://127.0.0.1:28765/{name}")).unwrap();
    for (down, prefix) in [(false, ""), (true, "down_")] {
        let pick = |name: &str| url(if down { "down" } else { name });
        let urls = pages::api::ServiceUrls {
            auth: url("auth"),
            orders: pick("order-intake"),
            returns: url("rma-engine"),
            exchange: pick("exchange"),
            warehouse: pick("warehouse-notifier"),
        };
        let app = crate::App { api: pages::api::Api::new(urls).unwrap(), clock: platform::Clock::system() };
        let service = test::init_service(
            WebApp::new().app_data(web::Data::new(app)).configure(crate::routes::configure),
        )
        .await;
        let list = std::fs::read_to_string("/tmp/console_c_urls.txt").unwrap();
        for line in list.lines().filter(|line| !line.is_empty()) {
            let mut parts = line.splitn(4, ' ');
            let (name, role, target) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            let body = parts.next();
            let mut request = match body {
                None => test::TestRequest::get(),
                Some(body) => test::TestRequest::post()
                    .insert_header(("content-type", "application/x-www-form-urlencoded"))
                    .set_payload(body.to_owned()),
            };
            request = request.uri(target).cookie(Cookie::new("__Host-session", role.to_owned()));
            let started = std::time::Instant::now();
            let response = test::call_service(&service, request.to_request()).await;
            let status = response.status().as_u16();
            let location = response.headers().get("location").map(|it| it.to_str().unwrap().to_owned());
            let text = test::read_body(response).await;
            println!("{prefix}{name} {status} {} bytes {} ms {}", text.len(), started.elapsed().as_millis(), location.unwrap_or_default());
            std::fs::write(format!("/tmp/console_c_pages/{prefix}{name}.html"), &text).unwrap();
        }
    }
}
