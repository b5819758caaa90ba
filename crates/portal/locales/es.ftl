### Textos del portal de devoluciones. Cada mensaje existe en cada idioma con los mismos valores.

## Every page

language-name = Español
language-label = Idioma:
skip-to-content = Ir al contenido
footer-policy = Condiciones de devolución
footer-contact = Contacto
footer-withdraw = Desistir del contrato aquí
sign-out = Olvidar mis pedidos en este dispositivo
live-stale = Sin actualizar desde las { $time } UTC.
live-reload = Recargar la página
money = { $currency ->
    [EUR] { $number }{ "\u00A0" }€
    [GBP] { $number }{ "\u00A0" }GBP
    [JPY] { $number }{ "\u00A0" }JPY
    [USD] { $number }{ "\u00A0" }US$
   *[other] { $number }{ "\u00A0" }{ $currency }
}

## Steps

step-number = Paso { $number } de { $count }
step-find = Buscar
step-choose = Artículos
step-resolution = Solución
step-method = Envío
step-check = Revisar

## Errors

error-start = Volver al inicio
error-not-found-title = Esta página no existe
error-not-found-text = Compruebe la dirección o use el enlace que le envió la tienda.
error-unavailable-title = Vuelva a intentarlo en un momento
error-unavailable-text = Esta página no se puede mostrar ahora. No se ha cambiado nada.
error-too-many-title = Demasiados intentos
error-too-many-text = { $minutes ->
    [one] Ha habido demasiados intentos. Espere { $minutes } minuto y vuelva a intentarlo.
   *[other] Ha habido demasiados intentos. Espere { $minutes } minutos y vuelva a intentarlo.
}
error-proof-title = Busque de nuevo su pedido
error-proof-text = Empiece por el número de su pedido.
error-changed-title = Algo ha cambiado
error-changed-text = Esto ya no es posible. No se ha guardado nada. Vuelva atrás, recargue la página y revise su selección.
error-form-title = Esta página está desactualizada
error-form-text = No se ha guardado nada. Vuelva atrás, recargue la página e inténtelo de nuevo.
error-slow-title = El formulario no ha llegado
error-slow-text = No se ha guardado nada. Quizá su conexión sea lenta. Vuelva a intentarlo.
error-internal-title = Algo ha salido mal
error-internal-text = No se ha guardado nada. Vuelva a intentarlo más tarde.
title-error = Error:

## Find

find-title = Devolver o cambiar un pedido
find-intro = Busque su pedido en { $shop }. Necesita el número de pedido y la dirección de correo o el código postal del pedido, o un código de regalo.
find-again = Por su seguridad, busque de nuevo su pedido. Su selección se conserva.
find-known-order = Ha encontrado el pedido { $order }.
find-continue = Continuar con la devolución
find-returns = Mis devoluciones
find-order = Número de pedido
find-order-hint = Está en el correo de confirmación.
find-order-missing = Introduzca el número de pedido.
find-by = ¿Cómo recibió el pedido?
find-by-own = Lo pedí yo
find-by-gift = Fue un regalo
find-key-email = Correo electrónico del pedido
find-key-zip = Código postal de la dirección de entrega
find-key-both = Correo electrónico del pedido o código postal de la dirección de entrega
find-email-missing = Introduzca el correo electrónico del pedido.
find-zip-missing = Introduzca el código postal de la dirección de entrega.
find-key-missing = Introduzca el correo electrónico del pedido o el código postal de la dirección de entrega.
find-gift = Código de regalo
find-gift-hint = Doce letras y cifras. Quien hizo el regalo no se entera de la devolución.
find-gift-missing = Introduzca el código de regalo.
find-submit = Buscar pedido
find-wrong = No se ha encontrado ningún pedido con estos datos. Compruebe el número de pedido y el otro campo.
find-link-over = Este enlace ya no funciona. Busque aquí su pedido.

## The pages of a return that is not confirmed yet

form-errors = Corrija lo siguiente:
form-back = Atrás
form-continue = Continuar
choose-title = ¿Qué quiere devolver?
choose-order = Pedido { $order }
choose-empty = Este pedido no tiene artículos.
choose-no-exchange = Ya se cambió algo de este pedido. Los demás artículos se pueden reembolsar, pero no cambiar ni convertir en una tarjeta regalo.
choose-no-exchange-gift = Ya se cambió algo de este pedido, así que sus artículos no se pueden cambiar ni convertir en una tarjeta regalo. Póngase en contacto con la tienda.
choose-paid = Pagado: { $price }
choose-paid-each = Pagado: { $price } cada uno
choose-paid-all = Pagado: { $price } por los { $count }
choose-until = Hasta el { $date }
choose-until-range = Hasta el { $first } o el { $last }, según la entrega
choose-blocked = { $count } ×: { $reason }
choose-take = Devolver esto
choose-count = ¿Cuántos? (0 a { $max })
choose-less = Uno menos de { $title }
choose-more = Uno más de { $title }
choose-reason = Motivo
choose-reason-choose = Elija un motivo
choose-reason-missing = { $title }: elija un motivo.
choose-not-possible = { $title }: no se puede devolver.
choose-count-wrong = { $title }: escriba un número de 0 a { $max }.
choose-nothing = Elija al menos un artículo.
choose-too-many = Una devolución puede tener como máximo { $count } artículos. Haga varias devoluciones.
choose-other-currency = Los pedidos están en monedas distintas. Haga una devolución para cada uno.
choose-other-shopper = Estos pedidos no pueden ir en la misma devolución. Haga una devolución para cada uno.
choose-truncated = Este pedido tiene más artículos de los que caben en esta página. Para devolver los demás, póngase en contacto con la tienda.
choose-add = Añadir otro pedido
choose-add-submit = Añadir el pedido
ineligible-order-cancelled = El pedido se canceló.
ineligible-not-shipped = Todavía no se le ha enviado.
ineligible-already-returned = Ya está en una devolución.
ineligible-already-refunded = Ya se reembolsó.
ineligible-already-exchanged = Ya se cambió algo de este pedido. Elija un reembolso.
ineligible-too-heavy-for-express = Pesa demasiado para entregarlo sin caja.
ineligible-final-sale = Se vendió sin derecho a devolución.
ineligible-window-expired = El plazo de devolución ha terminado.
ineligible-window-expired-on = El plazo de devolución terminó el { $date }.
ineligible-other = No se puede devolver.
resolution-title = ¿Qué prefiere a cambio?
resolution-refund = Reembolso
resolution-exchange = Cambio
resolution-gift-card = Tarjeta regalo
resolution-refund-hint = Recibe { $amount } de vuelta.
resolution-exchange-hint = Recibe otra talla, color o versión.
resolution-gift-card-hint = Recibe una tarjeta regalo de { $amount }.
resolution-gift-card-bonus = Recibe una tarjeta regalo de { $amount } y, una sola vez por este pedido, { $bonus } de regalo.
resolution-gift-card-hint-gift = Recibe por correo electrónico una tarjeta regalo de la tienda.
resolution-none = { $title }: no es posible ni un cambio ni una tarjeta regalo.
resolution-remove = Elegir otros artículos
resolution-missing = { $title }: elija lo que prefiere a cambio.
resolution-no-variant = { $title }: ahora no es posible un cambio. Elija otra opción.
resolution-combination = { $title }: esta combinación no está disponible. Elija otra.
resolution-variant-missing = { $title }: elija lo que quiere recibir en el cambio.
exchange-unavailable = La tienda no puede indicar ahora qué tiene disponible, así que no es posible un cambio. Inténtelo más tarde o elija otra opción.
exchange-none = No hay nada disponible para el cambio. Elija otra opción.
exchange-too-few = De ninguna versión hay { $count } disponibles. Elija otra opción o devuelva menos artículos.
exchange-variant = Versión
exchange-size = Talla
exchange-color = Color
exchange-stock = { $count ->
    [one] { $count } disponible
   *[other] { $count } disponibles
}
exchange-same-price = Mismo precio
exchange-more = { $amount } más que su artículo
exchange-less = { $amount } menos que su artículo
exchange-choose = Elegir
exchange-in-stock = Todo lo disponible
exchange-no-combination = Esta combinación no está disponible.
exchange-loading = Preguntando a la tienda qué hay disponible…
exchange-load = Mostrar lo disponible
method-title = ¿Cómo lo devuelve?
method-legend = Elija una forma
method-missing = Elija una forma que sea posible para todos los artículos.
method-none = No hay ninguna forma posible para todos los artículos. Devuélvalos por separado o póngase en contacto con la tienda.
method-free = Gratis
method-refused = No es posible para { $title }: { $reason }
method-mail = Por paquete
method-mail-hint = Empaqueta los artículos, pega una etiqueta en el paquete y lo entrega.
method-mail-next = Recibe una etiqueta. Empaquete los artículos y entregue el paquete.
method-express = En un punto de entrega, sin caja
method-express-hint = Muestra un código QR y entrega los artículos. No necesita caja ni etiqueta.
method-express-next = Recibe un código QR. Lleve los artículos a un punto de entrega y muéstrelo.
method-keep = Quedárselo
method-keep-hint = No tiene que devolver nada.
method-keep-next = Se queda con los artículos y no devuelve nada.
check-title = Comprobar y confirmar
check-again = Aún no se ha guardado nada. Compruebe la devolución y confírmela de nuevo.
check-changed = Algo ha cambiado. Compruébelo y confirme de nuevo.
check-changed-shipping = El envío de la devolución costaba { $old } y ahora cuesta { $new }.
check-changed-amount = El reembolso era de { $old } y ahora es de { $new }.
check-changed-item = { $title }: { $change }
check-changed-kind = La diferencia de precio del cambio ha cambiado.
check-refused = Estos artículos no se pueden devolver así:
check-without = Devolver los demás artículos
check-other = Elegir otra opción
check-items = Sus artículos
check-amounts = Importes
check-next = Qué pasa después
check-confirm = Confirmar la devolución
check-email = Su correo electrónico
check-email-hint = Ahí llegan la tarjeta regalo y los mensajes sobre la devolución. Quien hizo el regalo no se entera.
check-email-wrong = Escriba su correo electrónico, por ejemplo nombre@example.com.
check-refund = Reembolso: { $amount }
check-exchange = Cambio por { $title }.
check-same-price = Tiene el mismo precio.
check-more = Cuesta { $amount } más que su artículo.
check-less = Cuesta { $amount } menos que su artículo.
check-gift-card = Tarjeta regalo: { $amount }
check-gift-card-gift = Tarjeta regalo
check-card-value = Tarjeta regalo
check-card-bonus = Regalo en la tarjeta
check-items-refund = Reembolso de los artículos
check-shipping = Envío de la devolución
check-total = Recibe de vuelta
check-to-pay = Paga por el envío de la devolución
check-next-refund = La tienda le reembolsa cuando ha recibido y revisado los artículos.
check-next-refund-keep = La tienda le reembolsa después de que confirme.
check-next-exchange = La tienda recibe su pedido de cambio en cuanto confirme.
check-next-difference = La tienda ajusta con usted la diferencia de precio.
check-next-not-cancelable = Después no podrá cancelar esta devolución, porque la tienda prepara enseguida su nuevo pedido o su tarjeta regalo.
check-next-gift-card = La tienda recibe el encargo de su tarjeta regalo en cuanto confirme.
confirm-again-title = Inténtelo de nuevo
confirm-again-text = Aún no sabemos si su devolución se guardó. Envíela de nuevo: nunca se crean dos devoluciones.
confirm-again-submit = Enviar de nuevo
confirmed-title = Ya lo ha confirmado: { $rma }
confirmed-text = Su devolución está guardada. No tiene que hacer nada más en esta página.
confirmed-show = Ver la devolución
confirmed-more-text = ¿Quiere devolver más unidades de los mismos artículos? Será una segunda devolución.
confirmed-more = Devolver otra unidad

## Returns

returns-title = Mis devoluciones
returns-none = Todavía no hay devoluciones de sus pedidos. Las devoluciones que inicie aparecerán aquí.
returns-new = Devolver un artículo
returns-requested = Solicitada el { $date }
returns-state-requested = Solicitada. El paquete aún no se ha entregado.
returns-state-dropped-off = Entregada al transportista.
returns-state-on-its-way = En camino a la tienda.
returns-state-arrived = Ha llegado a la tienda.
returns-state-kept = Usted se queda con los artículos.
returns-state-partial = Reembolsada en parte.
returns-state-refunded = Completada.
returns-state-canceled = Cancelada.
return-title = Devolución { $rma }
return-new-title = Su devolución está confirmada
return-new-text = Gracias. La tienda conoce su devolución. Puede imprimir esta página. Más tarde la encontrará con su pedido.
return-number = Número de devolución:
return-copy = Copiar
return-copied = Copiado
return-not-copied = No copiado
return-withdrawal = Acuse de recibo de su desistimiento
return-send = Cómo devolverlo
return-code-title = Código QR del número de devolución { $rma }
return-code = Muestre este código o diga el número:
return-mail-pack = Empaquete los artículos y ponga una nota con el número de devolución en el paquete.
return-mail-label = Imprima la etiqueta y péguela en el paquete, o muestre el código QR del transportista si ha recibido uno.
return-mail-receipt = Lleve el paquete a un punto de entrega del transportista y guarde el recibo.
return-express-bring = Lleve los artículos a un punto de entrega. No necesita ni caja ni etiqueta.
return-express-show = Muestre el código QR de arriba o diga el número de devolución.
return-express-receipt = Guarde el recibo.
return-drop-off-by = Entréguelo antes del final del { $date }.
return-calendar = Añadir al calendario
return-keep = No tiene que devolver nada: puede quedarse con los artículos.
return-label-waits = El transportista aún no ha enviado la etiqueta. Esta página la mostrará en cuanto llegue.
return-check-again = Volver a comprobar
return-label-pdf = Abrir la etiqueta (PDF)
return-label-code = Abrir el código QR del transportista
return-tracking-number = Número de seguimiento { $number }
return-items = Artículos
return-refund = Reembolso
return-shipping = Envío de la devolución
return-total = Usted recibe
return-cancel = Cancelar esta devolución
item-count = { $count } × { $title }
item-order = Pedido { $order }
item-paid = Usted pagó { $amount }.
item-canceled = Cancelado. Usted se queda con él.
item-refund = Reembolso de { $amount }
item-refund-gift = Reembolso
item-refunded = { $amount } reembolsados
item-refunded-before-shipping = { $amount } reembolsados, antes de los gastos de devolución
item-exchange = Cambio por { $title }
item-exchange-order = Su nuevo pedido tiene el número { $order }.
item-exchange-waits = La tienda prepara su nuevo pedido.
item-exchange-failed = El cambio no fue posible. En su lugar recibe un reembolso de { $amount }.
item-exchange-failed-gift = El cambio no fue posible. Póngase en contacto con la tienda.
item-gift-card = Tarjeta regalo
item-gift-card-order = Su tarjeta regalo está en el pedido { $order }.
item-gift-card-waits = La tienda prepara su tarjeta regalo.
track-title = Dónde está su devolución
track-requested = Solicitada
track-dropped-off = Entregada
track-on-its-way = En camino
track-arrived = Ha llegado
track-refunded = Reembolsada
track-exchange-placed = Cambio pedido
track-gift-card-issued = Tarjeta regalo emitida
track-canceled = Cancelada
track-done = Hecho
track-partly = Una parte de los artículos
track-partly-since = Una parte de los artículos, desde el { $date }
track-open = Todavía no
track-problem-not-dropped-off = El transportista aún no tiene el paquete. Todavía puede entregarlo.
track-problem-failure = El transportista informa de un problema con el paquete. Aún puede llegar.
track-problem-returned = El transportista le devuelve el paquete. Póngase en contacto con la tienda.
calendar-summary = Entregar la devolución a { $shop }
calendar-description = El número de devolución es { $rma }.
cancel-title = Cancelar la devolución { $rma }
cancel-text = Se cancela toda la devolución. Usted se queda con los artículos y puede volver a devolverlos mientras dure el plazo de devolución.
cancel-submit = Cancelar la devolución
cancel-keep = No cancelar
cancel-late = Esta devolución ya no se puede cancelar.
cancel-late-canceled = Ya está cancelada.
cancel-late-refunded = Una parte de los artículos ya está reembolsada.
cancel-late-carrier = El transportista ya tiene el paquete.
cancel-late-received = La tienda ya ha recibido una parte de los artículos.
cancel-late-exchange = La tienda ya prepara su nuevo pedido o su tarjeta regalo.
cancel-back = Volver a la devolución

## Withdrawal

withdraw-title = Desistir del contrato
withdraw-intro = Aquí puede desistir de un contrato con { $shop }. No tiene que indicar ningún motivo.
withdraw-name = Su nombre
withdraw-name-missing = Introduzca su nombre.
withdraw-order = Número de pedido (contrato)
withdraw-email = Correo electrónico
withdraw-email-hint = La dirección con la que hizo el pedido.
withdraw-email-missing = Introduzca un correo electrónico, por ejemplo nombre@example.com.
withdraw-submit = Continuar
withdraw-wrong = No se ha encontrado ningún pedido con estos datos. Compruebe el número de pedido y los demás campos.
withdraw-confirm-title = Confirmar su desistimiento
withdraw-data = Sus datos
withdraw-correct = Corregir los datos
withdraw-items = Artículos de los que desiste
withdraw-items-hint = Todos los artículos están seleccionados. Puede excluir algunos.
withdraw-count = Número de { $title }
withdraw-method = Cómo los devuelve
withdraw-no-method = Los artículos seleccionados no se pueden devolver juntos de ninguna de las formas que ofrece la tienda. Excluya algunos y actualice los importes, o escriba a la tienda que desiste.
withdraw-update = Actualizar los importes
withdraw-statement = Desisto del contrato respecto a los artículos seleccionados.
withdraw-confirm = Confirmar desistimiento
withdraw-none = Seleccione al menos un artículo. No se ha enviado nada.
withdraw-chosen = Aún no se ha enviado nada. Los importes corresponden a lo que ha seleccionado ahora: revíselos y confirme.
withdraw-changed = Algo ha cambiado y no se ha enviado nada. Revise los artículos y vuelva a confirmar.
withdraw-again-text = Aún no sabemos si su desistimiento se guardó. Envíelo de nuevo: solo cuenta una vez.
withdraw-nothing = Este pedido no tiene artículos que se puedan devolver ahora. Póngase en contacto con la tienda si aun así quiere desistir.
withdraw-why = Mostrar los artículos
withdrawn-title = Acuse de recibo de su desistimiento
withdrawn-received = Hemos recibido su desistimiento el { $date } a las { $time }.
withdrawn-time = { $time } (UTC{ $offset })
withdrawn-content = Usted desiste del contrato respecto a los artículos siguientes. Conserve este acuse de recibo.
withdrawn-shop = Tienda:
withdrawn-name = Nombre:
withdrawn-contact = Correo electrónico:
withdrawn-order = Número de pedido:
withdrawn-method = Forma de devolución:
withdrawn-cost = Gastos de devolución:
withdrawn-items = Artículos
withdrawn-download = Guardar como archivo de texto
withdrawn-return = Cómo devolver los artículos
